// The page's values: JSON with packed arrays, read once before anything is drawn.

const TYPES = {
  i1: Int8Array,
  u1: Uint8Array,
  i2: Int16Array,
  u2: Uint16Array,
  i4: Int32Array,
  u4: Uint32Array,
  f4: Float32Array,
  f8: Float64Array,
};

async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const values = new TYPES[packed.dtype](await new Response(stream).arrayBuffer());
  return new Table(values, packed.shape);
}

// An array with a shape; row(i) is a view on what lies under the first index.
class Table {
  constructor(values, shape) {
    this.values = values;
    this.shape = shape;
    this.stride = shape.slice(1).reduce((product, side) => product * side, 1);
  }
  at(index) {
    return this.values[index];
  }
  row(index) {
    return this.values.subarray(index * this.stride, (index + 1) * this.stride);
  }
  cell(index, second) {
    const inner = this.stride / this.shape[1];
    const start = index * this.stride + second * inner;
    return this.values.subarray(start, start + inner);
  }
}

async function readData() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const jobs = [];
  const visit = (holder) => {
    for (const [key, value] of Object.entries(holder)) {
      if (value === null || typeof value !== "object") continue;
      if (value.dtype in TYPES)
        jobs.push(
          unpacked(value).then((table) => {
            holder[key] = table;
          }),
        );
      else visit(value);
    }
  };
  visit(data);
  await Promise.all(jobs);
  return data;
}

const DATA = await readData().catch((error) => {
  const note = document.getElementById("failure");
  note.textContent = `This page needs a browser of 2023 or later; it could not read its data (${error.message}).`;
  note.hidden = false;
  throw error;
});
const N_SPLITS = DATA.summary.splits;
const N_NODES = DATA.summary.splits + DATA.summary.leaves;
const N_CLASSES = DATA.classes.length;

const PARENT = new Int32Array(N_NODES).fill(-1);
const DEPTH = new Int32Array(N_NODES);
const LEAVES_BELOW = new Int32Array(N_NODES).fill(1);
for (let split = 0; split < N_SPLITS; split++) {
  for (const child of childrenOf(split)) {
    PARENT[child] = split;
    DEPTH[child] = DEPTH[split] + 1;
  }
}
for (let split = N_SPLITS - 1; split >= 0; split--) {
  LEAVES_BELOW[split] = childrenOf(split).reduce((sum, child) => sum + LEAVES_BELOW[child], 0);
}

function isSplit(node) {
  return node < N_SPLITS;
}

function childrenOf(split) {
  return [DATA.tree.left.at(split), DATA.tree.right.at(split)];
}

function nodeName(node) {
  return isSplit(node) ? `split ${node}` : `leaf ${node - N_SPLITS}`;
}

function pathTo(node) {
  const path = [];
  for (let current = node; current >= 0; current = PARENT[current]) path.unshift(current);
  return path;
}

function total(values) {
  return values.reduce((sum, value) => sum + value, 0);
}

function largest(values) {
  let best = 0;
  for (let index = 1; index < values.length; index++) if (values[index] > values[best]) best = index;
  return best;
}

// The bars of a node: the share of every class, or the means of a regression between the lowest and highest of all.
function barsAt(node) {
  return Array.from(DATA.tree.bars.row(node));
}

// What a node predicts: its most frequent classes, or means and standard deviations.
function nodeInWords(node, most = 3) {
  return DATA.regression ? momentsAt(node).join(", ") : sharesInWords(barsAt(node), most);
}

function momentsAt(node) {
  const moments = DATA.tree.moments.row(node);
  return DATA.classes.map((name, k) => `${named(name)}${short(moments[k])} ± ${short(moments[N_CLASSES + k])}`);
}

// Values of a regression, with the names of its outputs where there are several.
function valuesInWords(values) {
  return DATA.classes.map((name, k) => named(name) + exact(values[k])).join(", ");
}

function named(output) {
  return N_CLASSES > 1 ? `${output} ` : "";
}

function majorityOf(node) {
  return largest(barsAt(node));
}

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

function count(value) {
  return WHOLE.format(value);
}

function short(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e3 && size < 1e7) return value.toFixed().replace("-", "−");
  const isPlain = size === 0 || (size >= 1e-3 && size < 1e7);
  const text = isPlain ? String(Number(value.toPrecision(3))) : value.toExponential(2);
  return text.replace("-", "−");
}

// A value of the table, with more digits than what was computed from it.
function exact(value) {
  const size = Math.abs(value);
  const text =
    size !== 0 && (size < 1e-4 || size >= 1e9) ? value.toExponential(3) : String(Number(value.toPrecision(6)));
  return text.replace("-", "−");
}

function signed(value) {
  return value > 0 ? `+${short(value)}` : short(value);
}

function percent(share) {
  return `${(100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;
}
