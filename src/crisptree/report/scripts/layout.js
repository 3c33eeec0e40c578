// Where the visible nodes stand: ends side by side, a split above the middle of its children. A wide tree is stretched
// downwards to fill its pane; its upper splits, which have room, are drawn larger so that the whole can be read.

const NODE =
  DATA.image && DATA.linear
    ? { width: 68, leaf: 68, gap: 20, height: 68, level: 138, narrow: 114 }
    : { width: 178, leaf: 82, gap: 14, height: 82, level: 146, narrow: 126 };

const MOST_STRETCH = 16;

function widthOf(node) {
  return isSplit(node) ? NODE.width : NODE.leaf;
}

// The room that a node takes where it is an end: a leaf, or a folded split.
function pitchOf(node) {
  return widthOf(node) + NODE.gap;
}

function layoutOf(open, level, stretch) {
  const places = new Map();
  let next = 0;
  const place = (node) => {
    const start = next;
    let x = next + pitchOf(node) / 2;
    if (isSplit(node) && open.has(node)) {
      const [left, right] = childrenOf(node).map(place);
      x = (left.x + right.x) / 2;
    } else {
      next += pitchOf(node);
    }
    // As large as its subtree, but within its bounds: the middle of its children is not always their middle.
    const room = 2 * Math.min(x - start, next - x);
    const scale = Math.max(Math.min(room / pitchOf(node), stretch), 1);
    places.set(node, { x, y: DEPTH[node] * level * stretch, scale, width: scale * widthOf(node) });
    return places.get(node);
  };
  place(0);
  return places;
}

function stretchFor(open, level, pane) {
  const { left, right, top, bottom } = boundsOf(layoutOf(open, level, 1).values());
  const wanted = ((right - left) * pane.height) / pane.width;
  return Math.min(Math.max(wanted / (bottom - top), 1), MOST_STRETCH);
}

function splitsAbove(depth) {
  const open = new Set();
  for (let split = 0; split < N_SPLITS; split++) if (DEPTH[split] < depth) open.add(split);
  return open;
}

// The splits that are open at first: level by level, all that leave the tree readable in a pane of this size.
function splitsThatFit(pane, smallest) {
  const open = new Set();
  let width = N_SPLITS ? pitchOf(0) : 0;
  const order = Array.from({ length: N_SPLITS }, (_, split) => split).sort((one, two) => DEPTH[one] - DEPTH[two]);
  for (const split of order) {
    if (split && !open.has(PARENT[split])) continue;
    const wider = width - pitchOf(split) + total(childrenOf(split).map(pitchOf));
    const deeper = (DEPTH[split] + 1) * NODE.level + NODE.height + 40;
    if (DEPTH[split] && (wider * smallest > pane.width || deeper * smallest > pane.height)) continue;
    open.add(split);
    width = wider;
  }
  return open;
}

function boundsOf(places) {
  const bounds = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
  for (const { x, y, scale, width } of places) {
    bounds.left = Math.min(bounds.left, x - width / 2);
    bounds.right = Math.max(bounds.right, x + width / 2);
    bounds.top = Math.min(bounds.top, y - (scale * NODE.height) / 2);
    bounds.bottom = Math.max(bounds.bottom, y + scale * (NODE.height / 2 + 40));
  }
  return bounds;
}
