// The panel about a split or a leaf.

function part(title, ...content) {
  return make("section", {}, make("h4", {}, title), ...content);
}

function hint(text) {
  return make("p", { class: "hint" }, text);
}

function welcome() {
  return [
    make("h3", {}, "Nothing selected"),
    hint("Select a split or a leaf of the tree, or a sample below."),
    make(
      "ul",
      { class: "hints" },
      make("li", {}, "A split sends a row to the right where its score is above zero, to the left otherwise."),
      make("li", {}, splitLegend()),
      make("li", {}, `${nodeLegend()} Thick lines carry many rows.`),
      make("li", {}, leafLegend()),
    ),
  ];
}

function nodeLegend() {
  if (DATA.regression) return "The mark under a split is its mean, between the lowest and the highest of all nodes.";
  return "The strip under a split shows the classes of its training rows.";
}

function leafLegend() {
  if (DATA.regression) return "Bars in a leaf are its means on the same scale, with mean and training rows below.";
  return "Bars in a leaf are its class frequencies, with the most frequent class and the training rows below.";
}

function splitLegend() {
  if (DATA.weights?.images)
    return "Its picture shows the weights: a row that is bright where the picture is bright goes right.";
  if (DATA.weights)
    return "Rows for which its rule holds go right. Blue bars push a row with large values right, red ones left.";
  if (!N_SPLITS) return "This tree has none: it is a single leaf.";
  return "Its question is a module, so there are no weights to draw.";
}

function headOf(kind, title, ...facts) {
  return make(
    "header",
    { class: "panel-head" },
    make("p", { class: "eyebrow" }, kind),
    make("h3", {}, title),
    ...facts,
  );
}

function splitPanel(split, listener) {
  const [left, right] = childrenOf(split);
  return [
    headOf(
      `Depth ${DEPTH[split]}`,
      `Split ${split}`,
      hint(`Information gain ${short(DATA.tree.gain.at(split))} nats in training`),
    ),
    DATA.rules ? part("Goes right where", make("p", { class: "rule" }, DATA.rules[split])) : null,
    part("Weights", weightsOf(split)),
    part(
      scoresTitle(),
      ...(DATA.histograms
        ? [scoreHistogram(split), hint("The outermost bars hold all scores beyond them.")]
        : [hint("No rows were given with this report.")]),
    ),
    part(
      "Rows",
      countsTable(
        [
          ["here", split],
          ["go left", left],
          ["go right", right],
        ],
        listener,
      ),
    ),
    outputsOf(split),
    errorsAt(split),
  ];
}

function scoresTitle() {
  if (DATA.regression) return "Scores of the given rows";
  return DATA.labelled ? "Scores of the given rows, by class" : "Scores of the given rows, by predicted class";
}

// The classes of the training rows of a node, or means and standard deviations.
function outputsOf(node) {
  if (DATA.regression) return part("Means and standard deviations in training", make("p", {}, nodeInWords(node)));
  const columns = [DATA.tree.train.row(node), DATA.tree.given?.row(node)];
  return part(isSplit(node) ? "Classes in training" : "Classes", classBars(barsAt(node), columns), columnsHint());
}

function columnsHint() {
  return hint(
    DATA.tree.given
      ? "Share in training, training rows, given rows."
      : "Share in training, training rows; no rows were given.",
  );
}

function errorsAt(split) {
  const entry = DATA.error_attribution?.find(([responsible]) => responsible === split);
  if (!DATA.error_attribution) return null;
  return part(
    "Errors",
    hint(
      entry
        ? `Responsible for ${count(entry[1])} errors, ${percent(entry[2])} of all.`
        : "Responsible for no error of the given rows.",
    ),
  );
}

function weightsOf(split) {
  if (!DATA.weights) return hint("This split is a module: it has no weight for each feature.");
  if (DATA.weights.images) return weightImages(split);
  const features = DATA.weights.features.row(split),
    values = DATA.weights.values.row(split),
    raw = DATA.weights.raw.row(split);
  const entries = Array.from(values, (amount, rank) => ({
    amount,
    name: DATA.features[features[rank]],
    hint: `× ${short(raw[rank])}`,
  })).filter((entry) => entry.amount);
  const nonzero = DATA.weights.nonzero.at(split);
  return make(
    "div",
    {},
    entries.length ? signedBars(entries) : hint("All weights are zero."),
    hint(
      `${entries.length} largest of ${count(nonzero)} weights. Bars and first numbers: what one spread of the ` +
        "feature adds to the score; second numbers: what one unit adds. Blue pushes right, red left.",
    ),
  );
}

function weightImages(split) {
  const { images, scale, step } = DATA.weights;
  const [, height, width, channels] = images.shape;
  const values = images.row(split);
  const row = make("div", { class: "figures" });
  channelNames(channels).forEach((name, channel) => {
    const of = name ? `, ${name}` : "";
    row.append(
      figure(
        greyImage(values, height, width, channels, channel, `Weights of split ${split} in grey${of}`),
        `linear grey${of}`,
      ),
      figure(
        divergingImage(values, height, width, channels, channel, `Weights of split ${split}, blue pushes right${of}`),
        `red left, blue right${of}`,
      ),
    );
  });
  const coarse = step > 1 ? ` Shown at 1/${step} of the resolution.` : "";
  const words = `Largest weight ${short(scale.at(split))}, on scaled pixels.${coarse}`;
  return make("div", {}, row, hint(words));
}

function countsTable(entries, listener) {
  const cell = (values) => (values ? count(total(values)) : "–");
  return plainTable(
    ["", "training", "given"],
    entries.map(([name, node]) => [
      name === "here" ? name : make("span", {}, name, " ", nodeButton(node, listener)),
      cell(DATA.tree.train.row(node)),
      cell(DATA.tree.given?.row(node)),
    ]),
  );
}

function nodeButton(node, listener) {
  return button(nodeName(node), () => listener.select(node), { class: "link" });
}

function leafPanel(node, listener) {
  const leaf = node - N_SPLITS;
  const predicted = DATA.regression ? nodeInWords(node) : className(majorityOf(node));
  const path = pathTo(node).slice(0, -1);
  const what = !DATA.models ? "Predicts " : DATA.regression ? "Mean in training " : "Most frequent in training: ";
  return [
    headOf(`Depth ${DEPTH[node]}`, `Leaf ${leaf}`, make("p", {}, what, predicted)),
    DATA.sentences ? part("In one sentence", make("p", { class: "rule" }, DATA.sentences[leaf])) : null,
    DATA.models ? part("Its linear model", ...modelOf(leaf)) : null,
    DATA.regression ? null : outputsOf(node),
    part("Rows", countsTable([["here", node]], listener)),
    part(
      "Decision path",
      path.length
        ? make(
            "p",
            { class: "decision-path" },
            path.map((split) => nodeButton(split, listener)),
          )
        : hint("This leaf is the whole tree."),
    ),
    part("Examples", leafSamples(leaf, listener)),
  ];
}

function modelOf(leaf) {
  return (DATA.models?.[leaf] ?? []).map((text) => make("p", { class: "rule" }, text));
}

const EXAMPLES = 24;

function leafSamples(leaf, listener) {
  if (!DATA.samples) return hint("No rows were given with this report.");
  const here = samplesWhere((sample) => DATA.samples.leaf.at(sample) === leaf);
  const rows = total(DATA.tree.given.row(N_SPLITS + leaf));
  if (!here.length)
    return hint(rows ? "None of the samples kept in this report ends here." : "None of the given rows ends here.");
  const shown = here.slice(0, EXAMPLES);
  return make("div", {}, sampleList(shown, listener), hint(`${shown.length} of ${count(rows)} given rows.`));
}
