// A tree that sends a row down one path: the arithmetic of crisptree, in single precision and its order of summation,
// so that every row reaches the leaf that it reaches there. Nothing here needs anything else.

// `spec` has: columns [{name, kind, feature, categories, fill, missing}], missingTexts, nFeatures, classes,
// trees [{left, right, index, start, weight, bias, tables}]. Splits have the weights start[i] to start[i + 1] of the
// features in `index`; where that is null, one weight for every feature. Leaves with linear models have slopes and
// offsets too, one function for every output.
function crispModel(spec) {
  const lanes = new Float32Array(32);
  const places = spec.columns.map((column) => new Map(column.categories.map((level, place) => [level, place])));
  const absent = new Set(spec.missingTexts);
  const nOutputs = spec.trees[0].tables.length / (spec.trees[0].left.length + 1);

  // Term j goes to lane j mod 32; lanes are added pairwise, the upper half to the lower half; the bias comes last.
  // Stores into a Float32Array round each step to single precision, as Math.fround does.
  function score(tree, split, features) {
    lanes.fill(0);
    if (tree.index === null) {
      const first = split * spec.nFeatures;
      for (let j = 0; j < spec.nFeatures; j++) lanes[j & 31] += Math.fround(features[j] * tree.weight[first + j]);
    } else {
      for (let term = tree.start[split]; term < tree.start[split + 1]; term++) {
        const j = tree.index[term];
        lanes[j & 31] += Math.fround(features[j] * tree.weight[term]);
      }
    }
    for (let half = 16; half > 0; half >>= 1) for (let lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
    return Math.fround(lanes[0] + tree.bias[split]);
  }

  // Above zero it goes right; a child below zero is the leaf -child - 1.
  function leafIn(tree, features) {
    let child = tree.left.length ? 0 : -1;
    while (child >= 0) child = score(tree, child, features) > 0 ? tree.right[child] : tree.left[child];
    return -child - 1;
  }

  function isMissing(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return true;
    return typeof value === "string" && absent.has(value.trim());
  }

  // Numbers as text that is the same for 1 and 1.0, in Python's way of writing.
  function numberText(value) {
    if (Number.isInteger(value) && Math.abs(value) < 2 ** 63) return BigInt(value).toString();
    const size = Math.abs(value);
    if (size >= 1e-4 && size < 1e16) return String(value);
    return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
  }

  function levelText(value) {
    if (typeof value === "string") return value.trim().replace(/^(-?\d+)\.0+$/, "$1");
    return typeof value === "number" ? numberText(value) : String(value);
  }

  function numberOf(value, column) {
    let number = value;
    if (typeof value === "boolean") number = value ? 1 : 0;
    if (typeof value === "bigint") number = Number(value);
    if (typeof value === "string") {
      const text = value.trim();
      const word = ["false", "true"].indexOf(text.toLowerCase());
      if (column.kind === "boolean" && word >= 0) number = word;
      else number = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text) ? Number(text) : NaN;
    }
    if (typeof number !== "number" || !Number.isFinite(Math.fround(number)))
      throw new RangeError(`column ${JSON.stringify(column.name)} must hold a finite number; got ${String(value)}`);
    return number;
  }

  // Writes what a column has into the features of a row.
  function setColumn(features, place, value) {
    const column = spec.columns[place];
    const own = column.kind === "category" ? column.categories.length : 1;
    features.fill(0, column.feature, column.feature + own + (column.missing ? 1 : 0));
    if (isMissing(value)) {
      if (column.kind !== "category" && column.fill === null)
        throw new RangeError(`column ${JSON.stringify(column.name)} must have a number; the model has none to fill in`);
      if (column.kind !== "category") features[column.feature] = column.fill;
      if (column.missing) features[column.feature + own] = 1;
    } else if (column.kind === "category") {
      const level = places[place].get(levelText(value));
      if (level !== undefined) features[column.feature + level] = 1;
    } else {
      features[column.feature] = numberOf(value, column);
    }
  }

  // A typed array holds features as the tree sees them; an array holds columns in their order; an object has them by
  // name. null and undefined mean that a value is missing; a column that is not there at all is a mistake.
  function encode(row) {
    if (ArrayBuffer.isView(row)) {
      if (row.length !== spec.nFeatures)
        throw new RangeError(`a row must have ${spec.nFeatures} features; got ${row.length}`);
      const features = Float32Array.from(row);
      if (!features.every(Number.isFinite)) throw new RangeError("features must be finite numbers");
      return features;
    }
    const features = new Float32Array(spec.nFeatures);
    if (Array.isArray(row) && row.length !== spec.columns.length)
      throw new RangeError(`a row must have ${spec.columns.length} columns; got ${row.length}`);
    spec.columns.forEach((column, place) => {
      if (!Array.isArray(row) && !Object.hasOwn(row, column.name))
        throw new RangeError(`a row must have the column ${JSON.stringify(column.name)}`);
      setColumn(features, place, Array.isArray(row) ? row[place] : row[column.name]);
    });
    return features;
  }

  function leaves(row) {
    const features = encode(row);
    return spec.trees.map((tree) => leafIn(tree, features));
  }

  // What a leaf says of a row: its table, or what its model makes of the features; of classes the softmax of that.
  function saidBy(tree, leaf, features) {
    const first = leaf * nOutputs;
    if (!tree.slopes) return tree.tables.subarray(first, first + nOutputs);
    const scores = Float64Array.from({ length: nOutputs }, (_, k) => {
      let sum = 0;
      for (let j = 0; j < spec.nFeatures; j++) sum += features[j] * tree.slopes[(first + k) * spec.nFeatures + j];
      return sum + tree.offsets[first + k];
    });
    if (!spec.classes.length) return scores;
    const most = Math.max(...scores);
    const shares = scores.map((score) => Math.exp(score - most));
    const all = shares.reduce((sum, share) => sum + share, 0);
    return shares.map((share) => share / all);
  }

  function tableOf(row) {
    const features = encode(row);
    const sums = new Float64Array(nOutputs);
    for (const tree of spec.trees) saidBy(tree, leafIn(tree, features), features).forEach((value, k) => (sums[k] += value));
    return spec.trees.length > 1 ? sums.map((sum) => sum / spec.trees.length) : sums;
  }

  function largestOf(table) {
    let best = 0;
    for (let k = 1; k < nOutputs; k++) if (table[k] > table[best]) best = k;
    return best;
  }

  return {
    setColumn,
    leaves,
    leaf: (row) => (spec.trees.length > 1 ? leaves(row) : leaves(row)[0]),
    predictProba: tableOf,
    predict(row) {
      const table = tableOf(row);
      if (spec.classes.length) return spec.classes[largestOf(table)];
      return nOutputs > 1 ? [...table] : table[0]; // a regression
    },
  };
}
