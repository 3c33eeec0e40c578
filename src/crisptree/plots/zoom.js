// Zoom and pan of an SVG that a browser shows by itself: wheel, drag, double click.
const svg = document.documentElement;
const whole = svg.getAttribute("viewBox").split(" ").map(Number);
let [x, y, width, height] = whole;
const show = () => svg.setAttribute("viewBox", [x, y, width, height].join(" "));
const pointAt = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
svg.setAttribute("width", "100%");
svg.setAttribute("height", "100%");
svg.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    const { x: atX, y: atY } = pointAt(event);
    const factor = Math.min(Math.max(Math.exp(event.deltaY * 0.002), whole[2] / width / 200), whole[2] / width);
    [x, y] = [atX - (atX - x) * factor, atY - (atY - y) * factor];
    [width, height] = [width * factor, height * factor];
    show();
  },
  { passive: false },
);
svg.addEventListener("pointermove", (event) => {
  if (!(event.buttons & 1)) return;
  const scale = svg.getScreenCTM().a;
  [x, y] = [x - event.movementX / scale, y - event.movementY / scale];
  show();
});
svg.addEventListener("dblclick", () => {
  [x, y, width, height] = whole;
  show();
});
