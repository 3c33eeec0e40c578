// Elements and images. Text reaches the page through textContent alone.

const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes = {}, ...content) {
  return filled(document.createElement(tag), attributes, content);
}

function shape(tag, attributes = {}, ...content) {
  return filled(document.createElementNS(SVG, tag), attributes, content);
}

function filled(element, attributes, content) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...content.flat().filter((part) => part !== null && part !== undefined));
  return element;
}

function button(text, onclick, attributes = {}) {
  return make("button", { type: "button", onclick, ...attributes }, text);
}

// A table of rows of texts or elements, the first of each its heading; names of columns stand above.
function plainTable(names, rows, kind = "") {
  const cells = ([first, ...others]) => [
    make("th", { scope: "row" }, first),
    ...others.map((part) => (part instanceof HTMLTableCellElement ? part : make("td", {}, part))),
  ];
  const head = names && make("thead", {}, make("tr", {}, names.map((name) => make("th", { scope: "col" }, name))));
  const body = make("tbody", {}, rows.map((row) => make("tr", {}, cells(row))));
  return make("table", { class: `plain ${kind}`.trim() }, head, body);
}

function swatch(number) {
  const square = make("span", { class: "swatch", "aria-hidden": "true" });
  square.style.background = DATA.colors[number];
  return square;
}

function className(number) {
  return make(
    "span",
    { class: "class-name" },
    swatch(number),
    make("span", { class: "name", title: DATA.classes[number] }, DATA.classes[number]),
  );
}

// Images are drawn pixel by pixel and enlarged without smoothing by the style sheet.
function canvasOf(height, width, paint, label) {
  const canvas = make("canvas", { height, width, class: "pixels", role: "img", "aria-label": label });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let place = 0; place < height * width; place++) {
    const [red, green, blue] = paint(place);
    image.data.set([red, green, blue, 255], 4 * place);
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

function channelOf(values, place, channels, channel) {
  if (channel !== null) return values[place * channels + channel];
  let sum = 0;
  for (let index = 0; index < channels; index++) sum += values[place * channels + index];
  return sum / channels;
}

const CHANNEL_NAMES = { 1: [""], 3: ["red channel", "green channel", "blue channel"] };

function channelNames(channels) {
  return CHANNEL_NAMES[channels] ?? Array.from({ length: channels }, (_, index) => `channel ${index}`);
}

// Grey from the smallest to the largest value; channel null is the mean of all.
function greyImage(values, height, width, channels, channel, label) {
  const shown = Array.from({ length: height * width }, (_, place) => channelOf(values, place, channels, channel));
  const low = Math.min(...shown),
    reach = Math.max(...shown) - low || 1;
  return canvasOf(height, width, (place) => Array(3).fill((255 * (shown[place] - low)) / reach), label);
}

const RIGHT_COLOR = [38, 92, 168],
  LEFT_COLOR = [187, 52, 58],
  ZERO_COLOR = [247, 247, 245];

// White at zero, blue for what sends a row right, red for what sends it left.
function divergingImage(values, height, width, channels, channel, label) {
  const shown = Array.from({ length: height * width }, (_, place) => channelOf(values, place, channels, channel));
  const reach = Math.max(...shown.map(Math.abs)) || 1;
  const paint = (place) => {
    const share = Math.abs(shown[place]) / reach;
    const end = shown[place] > 0 ? RIGHT_COLOR : LEFT_COLOR;
    return ZERO_COLOR.map((zero, index) => zero + share * (end[index] - zero));
  };
  return canvasOf(height, width, paint, label);
}

// Bytes as they are: three channels in color, any other number as the mean in grey.
function pictureOf(values, height, width, channels, label) {
  const paint =
    channels === 3
      ? (place) => values.subarray(3 * place, 3 * place + 3)
      : (place) => Array(3).fill(channelOf(values, place, channels, null));
  return canvasOf(height, width, paint, label);
}

function sampleImage(sample, label) {
  const [, height, width, channels] = DATA.samples.images.shape;
  return pictureOf(DATA.samples.images.row(sample), height, width, channels, label);
}

function figure(content, caption) {
  return make("figure", {}, content, make("figcaption", {}, caption));
}
