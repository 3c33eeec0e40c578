// Pan and zoom of the tree's pane.

const MARGIN = 16;
const TOOLS = 54;
const CLOSEST = 2.5,
  FARTHEST = 0.02;

class View {
  constructor(canvas, content) {
    this.canvas = canvas;
    this.content = content;
    this.x = 0;
    this.y = 0;
    this.zoom = 1;
    this.pointers = new Map();
    this.moved = 0;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
    }
    // The end of a drag is no click on what lies under it.
    canvas.addEventListener(
      "click",
      (event) => {
        if (this.moved > 5) event.stopPropagation();
      },
      { capture: true },
    );
  }

  get size() {
    return this.canvas.getBoundingClientRect();
  }

  // What a tree may fill: the pane without its margins and tools.
  get room() {
    const { width, height } = this.size;
    return { width: Math.max(width - 2 * MARGIN, 1), height: Math.max(height - MARGIN - TOOLS, 1) };
  }

  apply() {
    this.content.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.zoom})`);
    this.canvas.classList.toggle("far", this.zoom < 0.45);
  }

  zoomBy(factor, centerX = this.size.width / 2, centerY = this.size.height / 2) {
    const zoom = Math.min(Math.max(this.zoom * factor, FARTHEST), CLOSEST);
    this.x = centerX - ((centerX - this.x) * zoom) / this.zoom;
    this.y = centerY - ((centerY - this.y) * zoom) / this.zoom;
    this.zoom = zoom;
    this.apply();
  }

  // Shows a place in the middle of the upper edge.
  zoomTo(zoom, { x }) {
    this.zoom = zoom;
    this.x = this.size.width / 2 - zoom * x;
    this.y = MARGIN + (zoom * NODE.height) / 2;
    this.apply();
  }

  moveBy(x, y) {
    this.x += x;
    this.y += y;
    this.apply();
  }

  fit(bounds, most = 1.15) {
    const { width, height } = this.room;
    const zoom = Math.min(width / (bounds.right - bounds.left), height / (bounds.bottom - bounds.top), most);
    this.zoom = Math.max(zoom, FARTHEST);
    const spare = height - this.zoom * (bounds.bottom - bounds.top);
    this.x = MARGIN + width / 2 - (this.zoom * (bounds.left + bounds.right)) / 2;
    this.y = MARGIN - this.zoom * bounds.top + Math.max(0, Math.min(spare / 2, 40));
    this.apply();
  }

  // Moves as little as needed to bring a place into sight.
  show({ x, y }) {
    const { width, height } = this.size;
    const marginX = Math.min(NODE.width * this.zoom, width / 3),
      marginY = Math.min(NODE.height * this.zoom + 30, height / 3);
    const [left, top] = [this.x + x * this.zoom, this.y + y * this.zoom];
    this.moveBy(
      Math.max(marginX - left, 0) - Math.max(left - (width - marginX), 0),
      Math.max(marginY - top, 0) - Math.max(top - (height - marginY - 30), 0),
    );
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const { left, top } = this.size;
    this.zoomBy(Math.exp(-event.deltaY * 0.004), event.clientX - left, event.clientY - top);
  }

  press(event) {
    if (event.button !== 0) return;
    if (!this.pointers.size) this.moved = 0;
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = { x: event.clientX, y: event.clientY };
    const [dx, dy] = [now.x - before.x, now.y - before.y];
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.moved += Math.hypot(dx, dy);
    this.pointers.set(event.pointerId, now);
    if (other) {
      const { left, top } = this.size;
      const spread = (point) => Math.hypot(point.x - other.x, point.y - other.y) || 1;
      this.zoomBy(spread(now) / spread(before), (now.x + other.x) / 2 - left, (now.y + other.y) / 2 - top);
      this.moveBy(dx / 2, dy / 2);
    } else {
      this.moveBy(dx, dy);
    }
    if (this.moved > 5 && !this.canvas.hasPointerCapture(event.pointerId))
      this.canvas.setPointerCapture(event.pointerId);
  }
}
