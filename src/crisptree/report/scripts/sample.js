// One sample: its face, the list it stands in, and why it went where it went.

function samplesWhere(holds) {
  const found = [];
  for (let sample = 0; sample < (DATA.samples?.count ?? 0); sample++) if (holds(sample)) found.push(sample);
  return found;
}

function trueOf(sample) {
  return DATA.samples.true === null ? null : DATA.samples.true.at(sample);
}

// The class of a sample, or its values, with its swatch or without.
function outputOf(table, sample) {
  return DATA.regression ? valuesInWords(table.row(sample)) : className(table.at(sample));
}

function outputInWords(table, sample) {
  return DATA.regression ? valuesInWords(table.row(sample)) : DATA.classes[table.at(sample)];
}

function isWrong(sample) {
  return !DATA.regression && trueOf(sample) !== null && trueOf(sample) !== DATA.samples.predicted.at(sample);
}

function sampleInWords(sample) {
  const predicted = `predicted ${outputInWords(DATA.samples.predicted, sample)}`;
  const words = DATA.samples.true ? `true ${outputInWords(DATA.samples.true, sample)}, ${predicted}` : predicted;
  return `${rowName(sample)}, ${words}`;
}

function rowName(sample) {
  return DATA.samples.ids ? `Row ${DATA.samples.ids[sample]}` : `Row ${DATA.samples.row.at(sample)}`;
}

// What a row has in one of its columns.
function valueOf(sample, place) {
  const { levels } = DATA.samples.columns[place];
  const value = DATA.samples.values.row(sample)[place];
  if (Number.isNaN(value)) return "missing";
  return levels ? (levels[value] ?? "not known") : exact(value);
}

function sampleList(samples, listener) {
  const face = (sample, place) =>
    make(
      "button",
      {
        type: "button",
        class: isWrong(sample) ? "sample wrong" : "sample",
        tabindex: place ? -1 : 0,
        "data-sample": sample,
        "aria-label": sampleInWords(sample),
        title: sampleInWords(sample),
        onclick: () => listener.pick(sample, samples),
      },
      DATA.samples.images ? sampleImage(sample, "") : rowFace(sample),
      verdict(sample),
    );
  const kind = DATA.samples.images ? "thumbs" : "rows";
  return make("div", { class: kind, role: "group", "aria-label": "Samples", onkeydown: walk }, samples.map(face));
}

// One stop for Tab, arrows from there.
function walk(event) {
  const all = [...event.currentTarget.children];
  const place = all.indexOf(document.activeElement);
  const columns = all.filter((face) => face.offsetTop === all[0].offsetTop).length;
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
  if (!step || place < 0) return;
  event.preventDefault();
  const next = all[place + step];
  if (!next) return;
  all[place].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

const VALUES_IN_LIST = 4;

function rowFace(sample) {
  const shown = DATA.samples.columns
    .slice(0, VALUES_IN_LIST)
    .map(({ name }, place) => make("span", { title: name }, `${cut(name, 32)} ${valueOf(sample, place)}`));
  return make("span", { class: "values" }, make("b", {}, rowName(sample)), shown);
}

function verdict(sample) {
  if (DATA.regression) {
    const truth = DATA.samples.true ? ` (true ${outputInWords(DATA.samples.true, sample)})` : "";
    return make("span", { class: "verdict" }, outputInWords(DATA.samples.predicted, sample) + truth);
  }
  const truth = trueOf(sample),
    predicted = DATA.samples.predicted.at(sample),
    wide = DATA.samples.images ? 10 : 24;
  const parts = isWrong(sample)
    ? [swatch(truth), cut(DATA.classes[truth], wide), " → ", swatch(predicted), cut(DATA.classes[predicted], wide)]
    : [swatch(predicted), cut(DATA.classes[predicted], wide + 4)];
  return make("span", { class: "verdict" }, parts);
}

function samplePath(sample) {
  return pathTo(N_SPLITS + DATA.samples.leaf.at(sample));
}

function samplePanel(sample, among, listener) {
  const nodes = samplePath(sample);
  const { true: truth, predicted } = DATA.samples;
  const place = among.indexOf(sample);
  const go = (step) =>
    button(step < 0 ? "← previous" : "next →", () => listener.pick(among[place + step], among), {
      class: "quiet",
      disabled: among[place + step] === undefined,
    });
  return [
    headOf(
      `Sample ${place + 1} of ${among.length}`,
      rowName(sample),
      make(
        "p",
        { class: "answers" },
        truth === null ? null : ["true ", outputOf(truth, sample)],
        " predicted ",
        outputOf(predicted, sample),
        truth === null || DATA.regression
          ? null
          : make("span", { class: isWrong(sample) ? "tag wrong" : "tag right" }, isWrong(sample) ? "wrong" : "right"),
      ),
    ),
    make("p", { class: "pager" }, go(-1), go(1)),
    DATA.samples.images
      ? make("div", { class: "figures" }, figure(sampleImage(sample, sampleInWords(sample)), "the sample"))
      : null,
    part(
      `Its path: ${nodes.length - 1} ${nodes.length === 2 ? "split" : "splits"}`,
      nodes.length > 1
        ? make(
            "ol",
            { class: "steps" },
            nodes.slice(0, -1).map((split, place) => stepItem(sample, split, nodes[place + 1], place, listener)),
          )
        : hint("The tree is a single leaf."),
    ),
    make(
      "p",
      { class: "ends" },
      "Ends in ",
      nodeButton(nodes[nodes.length - 1], listener),
      ": ",
      nodeInWords(nodes[nodes.length - 1]),
    ),
    ...modelOf(DATA.samples.leaf.at(sample)),
    DATA.regression ? null : part("The smallest change to another class", changeOf(sample, listener)),
    DATA.samples.images || WHAT_IF_AGREES ? null : part("Values", valuesTable(sample)),
    WHAT_IF_AGREES ? part("Its values, and what if they were others", whatIf(sample, listener)) : null,
  ];
}

function stepItem(sample, split, next, place, listener) {
  const [score, margin, offset] = DATA.samples.steps.cell(sample, place);
  const right = DATA.tree.right.at(split) === next;
  const rest = DATA.linear ? `; the mean training row scores ${signed(offset)}` : "";
  return make(
    "li",
    {},
    make(
      "p",
      { class: "step-head" },
      nodeButton(split, listener),
      make("span", { class: right ? "turn right" : "turn left" }, right ? "right →" : "← left"),
    ),
    DATA.rules ? make("p", { class: "rule" }, `${DATA.rules[split]}? ${right ? "Yes" : "No"}`) : null,
    hint(`Score ${signed(score)}, ${short(Math.abs(margin))} standard deviations from the boundary${rest}.`),
    pushesAt(sample, split, place),
    beforeAfter(split, next),
  );
}

function pushesAt(sample, split, place) {
  if (!DATA.linear) return null;
  if (DATA.weights.images) return pushImages(sample, split);
  const features = DATA.samples.push_features.cell(sample, place),
    numbers = DATA.samples.pushes.cell(sample, place);
  const entries = Array.from(features, (feature, rank) => ({
    feature,
    amount: numbers[2 * rank + 1],
    value: numbers[2 * rank],
  }))
    .filter((entry) => entry.feature >= 0 && entry.amount)
    .map((entry) => ({ ...entry, name: DATA.features[entry.feature], hint: `at ${exact(entry.value)}` }));
  return entries.length ? signedBars(entries) : hint("No feature differs from the mean training row here.");
}

// w (x − mean) of every pixel, from the weights and pixels that the page shows.
function pushImages(sample, split) {
  const { images, low, high, mean, factor, step } = DATA.samples;
  const weights = DATA.weights.images.row(split),
    scale = DATA.weights.scale.at(split) / 127;
  if (step !== 1 || DATA.weights.step !== 1) return hint("The images are too large to show the push of every pixel.");
  const pixels = images.row(sample);
  const pushes = Float32Array.from(
    pixels,
    (pixel, index) =>
      scale * weights[index] * factor.values[index] * (low + ((high - low) * pixel) / 255 - mean.values[index]),
  );
  const [, height, width, channels] = images.shape;
  return make(
    "div",
    { class: "figures small" },
    figure(greyImage(weights, height, width, channels, null, `Weights of split ${split}`), "weights"),
    figure(
      divergingImage(pushes, height, width, channels, null, "What pushes the sample right in blue, left in red"),
      "pushes: red left, blue right",
    ),
  );
}

function beforeAfter(split, next) {
  const line = (name, node) => [
    make("span", { class: "hint" }, name),
    DATA.regression ? make("span", {}) : sharesStrip(barsAt(node)),
    make("span", { class: "hint" }, nodeInWords(node, 2)),
  ];
  return make("div", { class: "before-after" }, line("before", split), line("after", next));
}

function changeOf(sample, listener) {
  if (!DATA.linear) return hint("It can be computed for linear splits only; those of this tree are modules.");
  const change = DATA.samples.changes[sample];
  const searched = DATA.samples.changes_searched;
  if (!change)
    return hint(
      sample < searched
        ? "No leaf of another class can be reached."
        : `Searched for the first ${searched} samples only, wrong ones first.`,
    );
  const words = make(
    "p",
    {},
    "to ",
    className(change.predicted),
    " in ",
    nodeButton(N_SPLITS + change.leaf, listener),
    `, at a distance of ${short(change.distance)}`,
    change.image ? "." : change.count === 1 ? "; one column changes." : `; ${count(change.count)} columns change.`,
  );
  return make(
    "div",
    {},
    words,
    change.image
      ? changeImages(change)
      : plainTable(
          null,
          change.columns.map(([name, before, after]) => [name, `${changeText(before)} → ${changeText(after)}`]),
          "changes",
        ),
    change.image
      ? null
      : hint("Values stay such as training has seen: in range, whole where all were, one level at a time."),
  );
}

function changeText(value) {
  if (value === null) return "not known";
  return typeof value === "number" ? exact(value) : value;
}

function changeImages(change) {
  const [height, width, channels] = change.image.shape;
  return make(
    "div",
    { class: "figures" },
    figure(pictureOf(change.image.values, height, width, channels, "The changed sample"), "changed"),
    figure(
      divergingImage(change.difference.values, height, width, channels, null, "The change: blue is more, red is less"),
      "the change: red less, blue more",
    ),
  );
}

function valuesTable(sample) {
  const rows = DATA.samples.columns.map(({ name }, place) => [name, valueOf(sample, place)]);
  return make("div", {}, make("div", { class: "scroll" }, plainTable(null, rows)), moreColumns("are not shown"));
}
