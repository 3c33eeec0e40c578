// Where the visible nodes stand: ends side by side, a split above the middle of its children. A wide tree is stretched
// downwards to fill its pane; its upper splits, which have room, are drawn larger so that the whole can be read.

const NODE =
  DATA.image && DATA.linear
    ? { width: 68, height: 68, pitch: 88, level: 138, narrow: 114 }
    : { width: 150, height: 66, pitch: 168, level: 134, narrow: 112 };

const MOST_STRETCH = 16;

function layoutOf(open, level, stretch) {
  const places = new Map();
  let next = 0;
  const place = (node) => {
    const first = next;
    let x = next * NODE.pitch;
    if (isSplit(node) && open.has(node)) {
      const [left, right] = childrenOf(node).map(place);
      x = (left.x + right.x) / 2;
    } else {
      next += 1;
    }
    places.set(node, { x, y: DEPTH[node] * level * stretch, scale: Math.min(next - first, stretch) });
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

// How deep the tree may be unfolded so that its ends stay readable in a pane of this width.
function readableDepth(paneWidth, smallest) {
  let depth = 1;
  while (depth < DATA.summary.depth) {
    const open = splitsAbove(depth + 1);
    let ends = 0;
    for (let node = 0; node < N_NODES; node++) {
      const above = PARENT[node] < 0 || open.has(PARENT[node]);
      if (above && !(isSplit(node) && open.has(node))) ends += 1;
    }
    if (ends * NODE.pitch * smallest > paneWidth) break;
    depth += 1;
  }
  return depth;
}

function boundsOf(places) {
  const bounds = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
  for (const { x, y, scale } of places) {
    bounds.left = Math.min(bounds.left, x - (scale * NODE.width) / 2);
    bounds.right = Math.max(bounds.right, x + (scale * NODE.width) / 2);
    bounds.top = Math.min(bounds.top, y - (scale * NODE.height) / 2);
    bounds.bottom = Math.max(bounds.bottom, y + scale * (NODE.height / 2 + 40));
  }
  return bounds;
}
