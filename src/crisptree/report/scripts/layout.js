// Where the visible nodes stand: ends side by side, a split above the middle of its children.

const NODE =
  DATA.image && DATA.linear
    ? { width: 68, height: 68, pitch: 88, level: 138, narrow: 114 }
    : { width: 150, height: 66, pitch: 168, level: 134, narrow: 112 };

function layoutOf(open, level) {
  const places = new Map();
  let next = 0;
  const place = (node) => {
    let x;
    if (isSplit(node) && open.has(node)) {
      const [left, right] = childrenOf(node).map(place);
      x = (left + right) / 2;
    } else {
      x = next * NODE.pitch;
      next += 1;
    }
    places.set(node, { x, y: DEPTH[node] * level });
    return x;
  };
  place(0);
  return places;
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
  for (const { x, y } of places) {
    bounds.left = Math.min(bounds.left, x - NODE.width / 2);
    bounds.right = Math.max(bounds.right, x + NODE.width / 2);
    bounds.top = Math.min(bounds.top, y - NODE.height / 2);
    bounds.bottom = Math.max(bounds.bottom, y + NODE.height / 2 + 40);
  }
  return bounds;
}
