// Quality of the predictions: figures of every class, ROC and calibration curves; what pruning would cost.

const CURVE = { width: 420, height: 170, left: 58, right: 8, top: 12, bottom: 26 };
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
  const share = (value) => make("td", {}, Number.isFinite(value) ? value.toFixed(3) : "–");
  const rows = DATA.classes.map((_, number) => {
    const [precision, recall, f1, support, area] = classFigures(number);
    const cells = [share(precision), share(recall), share(f1), share(area), make("td", {}, count(support))];
    return make("tr", {}, make("th", { scope: "row" }, className(number)), cells);
  });
  const names = ["class", "precision", "recall", "F1", "ROC area", "rows"];
  return make(
    "div",
    { class: "scroll tall" },
    make(
      "table",
      { class: "plain" },
      tableHead(names),
      make("tbody", {}, rows),
    ),
  );
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

// A diagram of two values; both axes have their lowest and highest value.
function frame(title, across, up, [low, high], [bottom, top]) {
  const plot = axes(title, across, up, title);
  const label = (x, y, anchor, value) => shape("text", { x, y, "text-anchor": anchor }, short(value));
  plot.picture.replaceChildren(
    shape("path", { class: "frame", d: `M${plot.x(0)} ${plot.y(1)}V${plot.y(0)}H${plot.x(1)}` }),
    ...[...plot.picture.querySelectorAll("text")].slice(-2),
    label(plot.x(0), plot.y(0) + 15, "start", low),
    label(plot.x(1), plot.y(0) + 15, "end", high),
    label(plot.x(0) - 6, plot.y(0), "end", bottom),
    label(plot.x(0) - 6, plot.y(1) + 8, "end", top),
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
  const { alphas, leaves, training, given } = DATA.pruning;
  const { width, height, left, right, top, bottom } = { ...CURVE, height: 230, bottom: 44 };
  const known = [...training, ...(given ?? [])];
  const low = Math.min(...known),
    reach = Math.max(...known) - low || 1,
    most = Math.log(Math.max(...leaves, 2));
  const x = (number) => left + 6 + (Math.log(number) / most) * (width - left - right - 12);
  const y = (share) => height - bottom - ((share - low) / reach) * (height - top - bottom);
  const picture = shape("svg", {
    viewBox: `0 0 ${width} ${height}`,
    class: "chart",
    role: "img",
    "aria-label": `${SCORE} from ${leaves[leaves.length - 1]} to ${leaves[0]} leaves`,
  });
  const tick = DATA.regression ? scoreText : percent;
  for (const share of [0, 0.5, 1]) {
    const at = y(low + share * reach);
    picture.append(
      shape("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }),
      shape("text", { x: left - 6, y: at + 3.5, "text-anchor": "end" }, tick(low + share * reach)),
    );
  }
  let last = Infinity;
  leaves.forEach((number) => {
    if (last - x(number) < 26) return;
    last = x(number);
    picture.append(shape("text", { x: last, y: height - 26, "text-anchor": "middle" }, count(number)));
  });
  picture.append(shape("text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle" }, "leaves"));
  for (const [kind, name, values] of [
    ["finetune", "training", training],
    ["", "given rows", given],
  ]) {
    if (!values) continue;
    picture.append(
      shape("path", {
        class: `curve ${kind}`,
        d: lineThrough(leaves.map((number, place) => [x(number), y(values[place])])),
      }),
    );
    leaves.forEach((number, place) =>
      picture.append(
        shape(
          "circle",
          { class: `curve ${kind}`, cx: x(number), cy: y(values[place]), r: 2.6 },
          shape("title", {}, `${count(number)} leaves: ${scoreText(values[place])}, ${name}`),
        ),
      ),
    );
  }
  const legend = make(
    "p",
    { class: "hint" },
    make("span", { class: "key finetune" }),
    "training ",
    ...(given ? [make("span", { class: "key" }), "given rows"] : []),
  );
  holder.append(
    make("figure", { class: "curve" }, make("figcaption", {}, `${SCORE} of the pruned trees`), picture, legend),
    pruningTable(),
  );
}

function pruningTable() {
  const { alphas, leaves, training, given } = DATA.pruning;
  const names = ["alpha", "leaves", "training", ...(given ? ["given"] : [])];
  const share = (value) => make("td", {}, scoreText(value));
  return make(
    "div",
    { class: "curve" },
    make(
      "div",
      { class: "scroll" },
      make(
        "table",
        { class: "plain" },
        tableHead(names),
        make(
          "tbody",
          {},
          alphas.map((alpha, place) =>
            make(
              "tr",
              {},
              make("th", { scope: "row" }, short(alpha)),
              make("td", {}, count(leaves[place])),
              share(training[place]),
              given ? share(given[place]) : null,
            ),
          ),
        ),
      ),
    ),
    hint(
      "model.prune(alpha) is the tree of a line; alpha is what a leaf must save for each training row, " +
        (DATA.regression ? "as a share of the variance." : "in nats."),
    ),
  );
}
