// What a node looks like in the tree.

const TERMS = 3;
const [TERM, MAJORITY] = ["11px", "620 14px"]; // as in the style sheet
const pen = document.createElement("canvas").getContext("2d");

function drawNode(node) {
  const bars = barsAt(node);
  const rows = total(DATA.tree.train.row(node));
  const group = shape("g", {
    role: "treeitem",
    "data-node": node,
    tabindex: -1,
    "aria-level": DEPTH[node] + 1,
    class: isSplit(node) ? "node split" : "node leaf",
    "aria-label": `${nodeName(node)}, ${count(rows)} training rows, ${nodeInWords(node)}`,
  });
  const rule = isSplit(node) && DATA.rules ? `\nright where ${DATA.rules[node]}` : "";
  group.append(shape("title", {}, `${nodeName(node)}: ${nodeInWords(node)}${rule}`), outline(node));
  group.append(isSplit(node) ? splitFace(node) : leafFace(node, bars, rows));
  if (isSplit(node)) group.append(DATA.regression ? scale(bars[0]) : strip(bars), foldHandle());
  return group;
}

function outline(node) {
  return shape("rect", {
    class: "face",
    x: -widthOf(node) / 2,
    y: -NODE.height / 2,
    width: widthOf(node),
    height: NODE.height,
    rx: 5,
  });
}

function splitFace(split) {
  if (DATA.weights?.images) {
    const [, height, width, channels] = DATA.weights.images.shape;
    const picture = greyImage(DATA.weights.images.row(split), height, width, channels, null, "");
    const side = NODE.width - 6;
    return shape("image", {
      href: picture.toDataURL(),
      x: -side / 2,
      y: -side / 2,
      width: side,
      height: side,
      class: "pixels",
    });
  }
  return DATA.lines ? termsFace(DATA.lines[split]) : caption(nodeName(split), 4, "plain");
}

// A tabular split as the rule by which rows go right: terms over bars of their effects, and the comparison.
function termsFace([terms, comparison]) {
  const group = shape("g", {});
  const row = NODE.height / (TERMS + 1.3),
    first = -NODE.height / 2 + 0.15 * row + ((TERMS - terms.length) * row) / 2,
    reach = Math.max(...terms.map(([, effect]) => Math.abs(effect))) || 1;
  const line = (text, y, kind) => caption(cutToWidth(text, NODE.width - 8, TERM), y, kind);
  terms.forEach(([text, effect], place) => {
    const y = first + place * row;
    const width = ((NODE.width / 2 - 4) * Math.abs(effect)) / reach;
    const sides = { x: effect > 0 ? 0 : -width, y: y + 1, width, height: row - 2, rx: 2 };
    if (effect) group.append(shape("rect", { class: effect > 0 ? "right" : "left", ...sides }));
    group.append(line(text, y + row / 2 + 4, "term"));
  });
  group.append(line(comparison, first + terms.length * row + row / 2 + 5, "term threshold"));
  return group;
}

function leafFace(leaf, shares, rows) {
  const group = shape("g", {});
  const width = (NODE.leaf - 12) / N_CLASSES,
    base = NODE.height / 2 - 5,
    height = NODE.height - 14;
  shares.forEach((share, number) => {
    if (share <= 0) return;
    const bar = shape("rect", {
      x: -NODE.leaf / 2 + 6 + number * width,
      y: base - share * height,
      width: Math.max(width * 0.86, 0.8),
      height: share * height,
    });
    bar.style.fill = DATA.colors[number];
    group.append(bar);
  });
  group.append(shape("line", { class: "middle", x1: -NODE.leaf / 2 + 5, x2: NODE.leaf / 2 - 5, y1: base, y2: base }));
  const prediction = DATA.regression ? short(DATA.tree.moments.row(leaf)[0]) : DATA.classes[largest(shares)];
  group.append(caption(cutToWidth(prediction, pitchOf(leaf) - 6, MAJORITY), NODE.height / 2 + 17, "majority"));
  group.append(caption(count(rows), NODE.height / 2 + 32, "rows"));
  return group;
}

function strip(shares) {
  const group = shape("g", { class: "shares" });
  let x = -NODE.width / 2;
  shares.forEach((share, number) => {
    const part = shape("rect", { x, y: NODE.height / 2 + 3, width: share * NODE.width, height: 5 });
    part.style.fill = DATA.colors[number];
    x += share * NODE.width;
    if (share > 0) group.append(part);
  });
  return group;
}

// Where the first mean of a regression lies between the lowest and the highest of all nodes.
function scale(height) {
  const y = NODE.height / 2 + 3;
  const mark = shape("rect", { x: -NODE.width / 2 + height * (NODE.width - 6), y, width: 6, height: 5 });
  mark.style.fill = DATA.colors[0];
  const line = shape("line", { class: "middle", x1: -NODE.width / 2, x2: NODE.width / 2, y1: y + 2.5, y2: y + 2.5 });
  return shape("g", { class: "shares" }, line, mark);
}

function foldHandle() {
  const y = NODE.height / 2 + 19;
  return shape(
    "g",
    { class: "fold" },
    shape("title", {}, "Fold or unfold (Space)"),
    shape("rect", { x: -18, y: y - 9, width: 36, height: 18, rx: 9 }),
    shape("text", { x: 0, y: y + 4, "text-anchor": "middle" }),
  );
}

function caption(text, y, kind) {
  return shape("text", { x: 0, y, "text-anchor": "middle", class: kind }, text);
}

// Cuts a text to a width in a font: a node's text must not run into its neighbour's.
function cutToWidth(text, width, size) {
  pen.font = `${size} ${getComputedStyle(document.body).fontFamily}`;
  if (pen.measureText(text).width <= width) return text;
  const letters = [...text];
  while (letters.length > 1 && pen.measureText(`${letters.join("")}…`).width > width) letters.pop();
  return `${letters.join("").trimEnd()}…`;
}

function cut(text, most) {
  const letters = [...text];
  return letters.length <= most ? text : `${letters.slice(0, Math.max(most - 1, 1)).join("")}…`;
}
