// The interactive tree: nodes are drawn once, placed anew whenever something unfolds.

// What is drawn smaller than this cannot be read.
const SMALLEST = 0.8;

class TreeView {
  constructor(canvas, listener) {
    this.canvas = canvas;
    this.listener = listener;
    this.edges = shape("g", { class: "edges", role: "presentation" });
    this.nodes = shape("g", { class: "nodes", role: "presentation" });
    const content = shape("g", { role: "presentation" }, this.edges, this.nodes);
    canvas.append(content);
    this.view = new View(canvas, content);
    this.drawn = new Map();
    this.focused = 0;
    this.selected = null;
    this.path = [];
    this.matches = null;
    this.aboveMatches = new Set();
    this.fold();
    canvas.addEventListener("click", (event) => this.click(event));
    canvas.addEventListener("dblclick", (event) => this.toggle(this.nodeOf(event)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resized()).observe(canvas);
  }

  fold() {
    this.open = splitsThatFit(this.view.room, SMALLEST);
    this.fit();
  }

  unfold() {
    this.open = splitsAbove(DATA.summary.depth);
    this.fit();
    if (this.view.zoom >= SMALLEST) return;
    // Rather dragged than too small to read; Fit shows the whole.
    this.stretch = 1;
    this.place();
    this.view.zoomTo(SMALLEST, this.places.get(0));
  }

  get level() {
    return this.path.length ? NODE.narrow : NODE.level;
  }

  fit() {
    this.stretch = stretchFor(this.open, this.level, this.view.room);
    this.place();
    this.view.fit(boundsOf(this.places.values()));
  }

  resized() {
    const width = this.view.size.width;
    if (Math.abs(width - (this.width ?? 0)) < 8) return;
    this.width = width;
    this.fit();
  }

  place() {
    this.places = layoutOf(this.open, this.level, this.stretch);
    const order = [...this.places.keys()];
    const hadFocus = this.nodes.contains(document.activeElement);
    if (!this.places.has(this.focused)) this.focused = pathTo(this.focused).findLast((node) => this.places.has(node));
    this.nodes.replaceChildren(...order.map((node) => this.placed(node)));
    this.edges.replaceChildren(...order.filter((node) => PARENT[node] >= 0).map((node) => this.edgeTo(node)));
    this.mark();
    // Elements that are put in anew lose the focus.
    if (hadFocus) this.drawn.get(this.focused).focus({ preventScroll: true });
  }

  placed(node) {
    if (!this.drawn.has(node)) this.drawn.set(node, drawNode(node));
    const element = this.drawn.get(node);
    const { x, y, scale } = this.places.get(node);
    element.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    if (isSplit(node)) {
      const open = this.open.has(node);
      element.setAttribute("aria-expanded", String(open));
      element.querySelector(".fold text").textContent = open ? "–" : `+${LEAVES_BELOW[node]}`;
      element.classList.toggle("folded", !open);
    }
    return element;
  }

  edgeTo(node) {
    const from = this.places.get(PARENT[node]);
    const to = this.places.get(node);
    const start = from.y + from.scale * (NODE.height / 2 + 27);
    const end = to.y - (to.scale * NODE.height) / 2;
    const middle = (start + end) / 2;
    const rows = total(DATA.tree.train.row(node)) / (total(DATA.tree.train.row(0)) || 1);
    return shape("path", {
      d: `M${from.x} ${start} C${from.x} ${middle + 6} ${to.x} ${middle - 6} ${to.x} ${end}`,
      "stroke-width": ((1 + 9 * rows) * Math.max(from.scale, 0.35 * this.stretch)).toFixed(2),
      "data-to": node,
    });
  }

  // Marks of what is selected, searched or on a sample's path.
  mark() {
    const onPath = new Set(this.path);
    this.canvas.classList.toggle("has-path", this.path.length > 0);
    // Where nothing is found, and where a sample's path is shown, nothing is dimmed for the sake of the search.
    this.canvas.classList.toggle("has-matches", Boolean(this.matches?.size) && !this.path.length);
    for (const node of this.places.keys()) {
      const element = this.drawn.get(node);
      element.classList.toggle("on-path", onPath.has(node));
      element.classList.toggle("match", this.matches?.has(node) ?? false);
      element.classList.toggle("leads", this.aboveMatches.has(node));
      element.classList.toggle("holds-match", !this.open.has(node) && this.aboveMatches.has(node));
      element.setAttribute("aria-selected", String(node === this.selected));
      element.setAttribute("tabindex", node === this.focused ? "0" : "-1");
    }
    for (const edge of this.edges.children) {
      const node = Number(edge.dataset.to);
      edge.classList.toggle("on-path", onPath.has(node));
      edge.classList.toggle("to-match", this.aboveMatches.has(node) || (this.matches?.has(node) ?? false));
    }
  }

  nodeOf(event) {
    const element = event.target.closest?.("[data-node]");
    return element ? Number(element.dataset.node) : null;
  }

  click(event) {
    const node = this.nodeOf(event);
    if (node === null) return;
    this.focused = node;
    if (event.target.closest(".fold")) this.toggle(node);
    else this.listener.select(node);
    this.drawn.get(node).focus({ preventScroll: true });
  }

  // The node stays where it is on the screen while the rest makes room.
  toggle(node) {
    if (node === null || !isSplit(node)) return;
    const before = this.places.get(node);
    if (this.open.has(node)) this.open.delete(node);
    else this.open.add(node);
    this.place();
    const after = this.places.get(node);
    this.view.moveBy((before.x - after.x) * this.view.zoom, 0);
    if (this.open.has(node)) childrenOf(node).forEach((child) => this.view.show(this.places.get(child)));
  }

  reveal(node) {
    pathTo(node)
      .slice(0, -1)
      .forEach((split) => this.open.add(split));
    this.place();
    this.view.show(this.places.get(node));
  }

  select(node) {
    this.selected = node;
    if (node !== null) {
      this.focused = node;
      this.reveal(node);
    }
    this.mark();
  }

  // Folds the tree to one path; what was open before comes back when the path is cleared.
  showPath(nodes) {
    if (nodes.length) {
      this.remembered ??= new Set(this.open);
      this.open = new Set(nodes.filter(isSplit));
    } else if (this.remembered) {
      this.open = this.remembered;
      this.remembered = null;
    } else {
      return;
    }
    this.path = nodes;
    if (nodes.length) this.focused = nodes[nodes.length - 1];
    this.fit();
  }

  search(matches) {
    this.matches = matches;
    this.aboveMatches = new Set([...(matches ?? [])].flatMap((match) => pathTo(match).slice(0, -1)));
    this.mark();
  }

  key(event) {
    const steps = {
      ArrowUp: () => PARENT[this.focused],
      ArrowDown: () => this.below(),
      ArrowLeft: () => this.beside(-1),
      ArrowRight: () => this.beside(1),
      Home: () => 0,
    };
    const acts = {
      Enter: () => this.listener.select(this.focused),
      " ": () => this.toggle(this.focused),
      "+": () => this.view.zoomBy(1.25),
      "-": () => this.view.zoomBy(0.8),
    };
    if (event.key in steps) this.focus(steps[event.key]());
    else if (event.key in acts) acts[event.key]();
    else return;
    event.preventDefault();
  }

  below() {
    if (!isSplit(this.focused)) return -1;
    if (!this.open.has(this.focused)) this.toggle(this.focused);
    const children = childrenOf(this.focused);
    return children.find((child) => this.path.includes(child)) ?? children[0];
  }

  beside(step) {
    const level = [...this.places.keys()].filter((node) => DEPTH[node] === DEPTH[this.focused]);
    level.sort((one, two) => this.places.get(one).x - this.places.get(two).x);
    return level[level.indexOf(this.focused) + step] ?? -1;
  }

  focus(node) {
    if (node < 0) return;
    this.focused = node;
    this.mark();
    this.drawn.get(node).focus({ preventScroll: true });
    this.view.show(this.places.get(node));
  }
}
