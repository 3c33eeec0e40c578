// What a node looks like in the tree.

const TERMS = 3;

function drawNode(node) {
  const shares = sharesAt(node);
  const rows = total(DATA.tree.train.row(node));
  const group = shape("g", {
    role: "treeitem",
    "data-node": node,
    tabindex: -1,
    "aria-level": DEPTH[node] + 1,
    class: isSplit(node) ? "node split" : "node leaf",
    "aria-label": `${nodeName(node)}, ${count(rows)} training rows, ${sharesInWords(shares)}`,
  });
  group.append(shape("title", {}, `${nodeName(node)}: ${sharesInWords(shares)}`), outline());
  group.append(isSplit(node) ? splitFace(node) : leafFace(node, shares, rows));
  if (isSplit(node)) group.append(strip(shares), foldHandle());
  return group;
}

function outline() {
  return shape("rect", {
    class: "face",
    x: -NODE.width / 2,
    y: -NODE.height / 2,
    width: NODE.width,
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
  if (!DATA.weights) return caption(`${nodeName(split)}`, 4, "plain");
  return termsFace(split);
}

// The largest weights of a tabular split as signed bars with their names.
function termsFace(split) {
  const features = DATA.weights.features.row(split),
    values = DATA.weights.values.row(split);
  const shown = Math.min(TERMS, DATA.weights.nonzero.at(split));
  const group = shape("g", {});
  const row = (NODE.height - 8) / TERMS,
    reach = Math.abs(values[0]) || 1;
  for (let term = 0; term < shown; term++) {
    const y = -NODE.height / 2 + 4 + term * row;
    const length = ((NODE.width / 2 - 8) * Math.abs(values[term])) / reach;
    const right = values[term] > 0;
    group.append(
      shape("rect", {
        class: right ? "right" : "left",
        x: right ? 0 : -length,
        y: y + 3,
        width: length,
        height: row - 6,
        rx: 2,
      }),
    );
    const name = cut(DATA.features[features[term]], 9);
    group.append(
      shape(
        "text",
        { x: right ? -4 : 4, y: y + row / 2 + 3.5, "text-anchor": right ? "end" : "start", class: "term" },
        name,
      ),
    );
  }
  group.append(shape("line", { class: "middle", x1: 0, x2: 0, y1: -NODE.height / 2 + 5, y2: NODE.height / 2 - 5 }));
  return group;
}

function leafFace(leaf, shares, rows) {
  const group = shape("g", {});
  const width = (NODE.width - 12) / N_CLASSES,
    base = NODE.height / 2 - 5,
    height = NODE.height - 14;
  shares.forEach((share, number) => {
    if (share <= 0) return;
    const bar = shape("rect", {
      x: -NODE.width / 2 + 6 + number * width,
      y: base - share * height,
      width: Math.max(width * 0.86, 0.8),
      height: share * height,
    });
    bar.style.fill = DATA.colors[number];
    group.append(bar);
  });
  group.append(shape("line", { class: "middle", x1: -NODE.width / 2 + 5, x2: NODE.width / 2 - 5, y1: base, y2: base }));
  const most = Math.floor(NODE.pitch / 8.5);
  group.append(caption(cut(DATA.classes[largest(shares)], most), NODE.height / 2 + 17, "majority"));
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

function cut(text, most) {
  const letters = [...text];
  return letters.length <= most ? text : `${letters.slice(0, Math.max(most - 1, 1)).join("")}…`;
}
