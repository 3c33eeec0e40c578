// Quality of the predictions: figures of every class, ROC and calibration curves; what pruning would cost.

const PLOT = { width: 330, height: 300, left: 44, right: 12, top: 10, bottom: 40 };

function axes(title, across, up, words) {
  const { width, height, left, right, top, bottom } = PLOT;
  const x = (share) => left + share * (width - left - right);
  const y = (share) => height - bottom - share * (height - top - bottom);
  const picture = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": words });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    picture.append(
      shape("line", { class: "grid", x1: x(0), x2: x(1), y1: y(share), y2: y(share) }),
      shape("line", { class: "grid", x1: x(share), x2: x(share), y1: y(0), y2: y(1) }),
    );
    if (share === 0.25 || share === 0.75) continue;
    picture.append(
      shape("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, share),
      shape("text", { x: x(share), y: y(0) + 15, "text-anchor": "middle" }, share),
    );
  }
  picture.append(
    shape("line", { class: "zero", x1: x(0), x2: x(1), y1: y(0), y2: y(1) }),
    shape("text", { x: x(0.5), y: height - 6, "text-anchor": "middle" }, across),
    shape("text", { x: 0, y: 0, "text-anchor": "middle", transform: `translate(11 ${y(0.5)}) rotate(-90)` }, up),
  );
  const holder = make("figure", { class: "curve" }, make("figcaption", {}, title), picture);
  return { picture, holder, x, y };
}

function lineThrough(points) {
  return `M${points.map((point) => point.map((side) => side.toFixed(1)).join(" ")).join("L")}`;
}

function rocCurves() {
  const areas = DATA.roc.map(({ class: number, area }) => `${DATA.classes[number]} ${area.toFixed(3)}`).join(", ");
  const one = DATA.roc.length === 1 ? DATA.roc[0] : null;
  const title = one
    ? `ROC of ${DATA.classes[one.class]}: area ${one.area.toFixed(3)}`
    : "ROC of each class against all others";
  const { picture, holder, x, y } = axes(title, "share of others taken for it", "share found", `Areas: ${areas}`);
  const drawn = DATA.roc.filter(({ found }) => found.length);
  for (const { class: number, alarms, found, area } of drawn) {
    const line = shape(
      "path",
      { class: "curve", d: lineThrough(alarms.map((share, place) => [x(share), y(found[place])])) },
      shape("title", {}, `${DATA.classes[number]}: area ${area.toFixed(3)}`),
    );
    line.style.stroke = DATA.colors[number];
    picture.append(line);
  }
  if (drawn.length < DATA.roc.length) holder.append(hint(`The ${drawn.length} classes with the most rows.`));
  return holder;
}

function calibrationCurve() {
  const { class: number, predicted, observed, rows } = DATA.calibration;
  const of = number === null ? "the predicted class" : DATA.classes[number];
  const { picture, holder, x, y } = axes(
    `Calibration: probability of ${of}`,
    "predicted probability",
    "observed frequency",
    `Predicted probability and observed frequency of ${of}`,
  );
  const most = Math.max(...rows);
  picture.append(
    shape("path", {
      class: "curve",
      d: lineThrough(predicted.map((share, place) => [x(share), y(observed[place])])),
    }),
  );
  predicted.forEach((share, place) =>
    picture.append(
      shape(
        "circle",
        { class: "curve", cx: x(share), cy: y(observed[place]), r: 2 + 4 * Math.sqrt(rows[place] / most) },
        shape(
          "title",
          {},
          `${count(rows[place])} rows: predicted ${percent(share)}, observed ${percent(observed[place])}`,
        ),
      ),
    ),
  );
  holder.append(hint("Larger dots are more rows. On the dashed line the two are equal."));
  return holder;
}

function classFigures(number) {
  const right = DATA.confusion.row(number)[number];
  const support = total(DATA.confusion.row(number));
  let predicted = 0;
  for (let truth = 0; truth < N_CLASSES; truth++) predicted += DATA.confusion.row(truth)[number];
  const precision = predicted ? right / predicted : NaN,
    recall = support ? right / support : NaN;
  const f1 = predicted + support ? (2 * right) / (predicted + support) : NaN;
  const area =
    DATA.roc.find((curve) => curve.class === number)?.area ?? (N_CLASSES === 2 ? DATA.roc[0]?.area : undefined);
  return [precision, recall, f1, support, area];
}

function classTable() {
  const share = (value) => (Number.isFinite(value) ? value.toFixed(3) : "–");
  const rows = DATA.classes.map((_, number) => {
    const [precision, recall, f1, support, area] = classFigures(number);
    return [className(number), ...[precision, recall, f1, area].map(share), count(support)];
  });
  const names = ["class", "precision", "recall", "F1", "ROC area", "rows"];
  return make("div", { class: "scroll tall" }, plainTable(names, rows));
}

function qualityOf(holder) {
  holder.append(
    make(
      "div",
      { class: "curve" },
      classTable(),
      hint(
        `Precision: of the rows predicted so, how many are. Recall: of the rows that are, how many are found. ` +
          `Always ${DATA.classes[DATA.baseline.class]} would be right for ${percent(DATA.baseline.given)} of the rows.`,
      ),
    ),
  );
  if (DATA.roc.length) holder.append(rocCurves());
  holder.append(calibrationCurve());
}

// A diagram of two values, with the lowest and highest of each axis; none across leaves that axis to the caller.
function frame(title, across, up, [low, high], [bottom, top], words = short) {
  const plot = axes(title, across, up, title);
  const label = (x, y, anchor, value) =>
    value === undefined ? null : shape("text", { x, y, "text-anchor": anchor }, words(value));
  plot.picture.replaceChildren(
    shape("path", { class: "frame", d: `M${plot.x(0)} ${plot.y(1)}V${plot.y(0)}H${plot.x(1)}` }),
    ...[...plot.picture.querySelectorAll("text")].slice(-2),
    ...[
      label(plot.x(0), plot.y(0) + 15, "start", low),
      label(plot.x(1), plot.y(0) + 15, "end", high),
      label(plot.x(0) - 6, plot.y(0), "end", bottom),
      label(plot.x(0) - 6, plot.y(1) + 8, "end", top),
    ].filter(Boolean),
  );
  return plot;
}

// True against predicted values of some rows with the diagonal, and the histogram of all residuals.
function residualsOf(holder, { name, true: truth, predicted, limit, counts }) {
  const values = [...truth.values, ...predicted.values];
  const low = Math.min(...values),
    high = Math.max(...values),
    reach = high - low || 1;
  const scatter = frame(`${name}: true against predicted`, "predicted", "true", [low, high], [low, high]);
  const { x, y } = scatter;
  scatter.picture.append(shape("line", { class: "zero", x1: x(0), x2: x(1), y1: y(0), y2: y(1) }));
  truth.values.forEach((value, row) => {
    const at = { cx: x((predicted.at(row) - low) / reach), cy: y((value - low) / reach), r: 2 };
    scatter.picture.append(shape("circle", { class: "dot", ...at }));
  });
  const most = Math.max(...counts);
  const histogram = frame(`${name}: true − predicted`, "true − predicted", "rows", [-limit, limit], [0, most]);
  counts.forEach((rows, bin) => {
    const left = x(bin / counts.length) + 0.5;
    const width = x((bin + 1) / counts.length) - left;
    const sides = { x: left, y: y(rows / most), width, height: y(0) - y(rows / most) };
    histogram.picture.append(shape("rect", { class: "bin", ...sides }, shape("title", {}, `${count(rows)} rows`)));
  });
  holder.append(scatter.holder, histogram.holder);
}

const SCORE = DATA.regression ? "R²" : "Accuracy";

function scoreText(score) {
  return DATA.regression ? score.toFixed(3) : `${(100 * score).toFixed(2)} %`;
}

function pruningCurves(holder) {
  const { leaves, training, given } = DATA.pruning;
  const known = [...training, ...(given ?? [])];
  const low = Math.min(...known),
    reach = Math.max(...known) - low || 1,
    most = Math.log(Math.max(...leaves, 2));
  const words = DATA.regression ? short : percent;
  const plot = frame(`${SCORE} of the pruned trees`, "leaves", "", [], [low, low + reach], words);
  const x = (number) => plot.x(0.02 + (0.96 * Math.log(number)) / most);
  const y = (score) => plot.y((score - low) / reach);
  let last = Infinity;
  leaves.forEach((number) => {
    if (last - x(number) < 26) return;
    last = x(number);
    plot.picture.append(shape("text", { x: last, y: plot.y(0) + 15, "text-anchor": "middle" }, count(number)));
  });
  for (const [kind, name, values] of [
    ["finetune", "training", training],
    ["", "given rows", given],
  ]) {
    if (!values) continue;
    const points = leaves.map((number, place) => [x(number), y(values[place])]);
    plot.picture.append(
      shape("path", { class: `curve ${kind}`, d: lineThrough(points) }),
      ...points.map(([cx, cy], place) => {
        const words = `${count(leaves[place])} leaves: ${scoreText(values[place])}, ${name}`;
        return shape("circle", { class: `curve ${kind}`, cx, cy, r: 2.6 }, shape("title", {}, words));
      }),
    );
  }
  const legend = make(
    "p",
    { class: "hint" },
    make("span", { class: "key finetune" }),
    "training ",
    ...(given ? [make("span", { class: "key" }), "given rows"] : []),
  );
  plot.holder.append(legend);
  holder.append(plot.holder, pruningTable());
}

function pruningTable() {
  const { alphas, leaves, training, given } = DATA.pruning;
  const names = ["alpha", "leaves", "training", ...(given ? ["given"] : [])];
  const scores = (place) => [training, ...(given ? [given] : [])].map((values) => scoreText(values[place]));
  const rows = alphas.map((alpha, place) => [short(alpha), count(leaves[place]), ...scores(place)]);
  return make(
    "div",
    { class: "curve" },
    make("div", { class: "scroll" }, plainTable(names, rows)),
    hint(
      "model.prune(alpha) is the tree of a line; alpha is what a leaf must save for each training row, " +
        (DATA.regression ? "as a share of the variance." : "in nats."),
    ),
  );
}
