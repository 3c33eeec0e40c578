// Training curves: likelihood, steepness and the hard validation score, epoch by epoch.

const CURVE = { width: 420, height: 170, left: 58, right: 8, top: 12, bottom: 26 };

function trainingCurves(holder) {
  const { likelihood, steepness, validation } = DATA.history;
  holder.append(curve("Mean log-likelihood of the training rows", likelihood), curve("Steepness γ", steepness));
  if (validation.some((value) => value !== null))
    holder.append(curve("Accuracy of the crisp tree on validation rows", validation));
  else
    holder.append(
      make(
        "figure",
        { class: "curve" },
        make("figcaption", {}, "Accuracy of the crisp tree on validation rows"),
        hint("Not measured: training had no validation rows."),
      ),
    );
}

// Stretches of one phase and level; a stump's loss and the whole tree's are different things, so lines break between.
function stretches() {
  const { phase, level, epoch } = DATA.history;
  const starts = phase
    .map((_, index) => index)
    .filter(
      (index) =>
        index === 0 ||
        phase[index] !== phase[index - 1] ||
        level[index] !== level[index - 1] ||
        epoch[index] <= epoch[index - 1],
    );
  return starts.map((start, place) => ({ start, stop: starts[place + 1] ?? phase.length, phase: phase[start] }));
}

function curve(title, values) {
  const { width, height, left, right, top, bottom } = CURVE;
  const known = values.filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const reach = high - low || Math.abs(high) || 1;
  const x = (index) => left + ((index + 0.5) * (width - left - right)) / values.length;
  const y = (value) => height - bottom - ((value - low) * (height - top - bottom)) / reach;
  const picture = shape("svg", {
    viewBox: `0 0 ${width} ${height}`,
    class: "chart",
    role: "img",
    "aria-label": `${title}: from ${short(known[0])} to ${short(known[known.length - 1])}`,
  });
  for (const share of [0, 0.5, 1]) {
    const at = y(low + share * reach);
    picture.append(
      shape("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }),
      shape("text", { x: left - 6, y: at + 3.5, "text-anchor": "end" }, short(low + share * reach)),
    );
  }
  for (const { start, stop, phase } of stretches()) {
    const points = [];
    for (let index = start; index < stop; index++)
      if (values[index] !== null) points.push([x(index), y(values[index])]);
    if (points.length === 1)
      picture.append(shape("circle", { class: `curve ${phase} dot`, cx: points[0][0], cy: points[0][1], r: 2 }));
    else if (points.length)
      picture.append(
        shape("path", {
          class: `curve ${phase}`,
          d: `M${points.map((point) => point.map((side) => side.toFixed(1)).join(" ")).join("L")}`,
        }),
      );
  }
  phaseLabels(picture, x, height);
  return make("figure", { class: "curve" }, make("figcaption", {}, title), picture);
}

function phaseLabels(picture, x, height) {
  const { phase } = DATA.history;
  const change = phase.findIndex((name) => name !== phase[0]);
  const parts =
    change < 0
      ? [[0, phase.length]]
      : [
          [0, change],
          [change, phase.length],
        ];
  for (const [start, stop] of parts) {
    const middle = (x(start) + x(stop - 1)) / 2;
    picture.append(
      shape(
        "text",
        { x: Math.min(Math.max(middle, 80), CURVE.width - 46), y: height - 8, "text-anchor": "middle" },
        phase[start] === "grow" ? "growing, level by level" : "finetuning",
      ),
    );
    if (start)
      picture.append(
        shape("line", { class: "grid", x1: x(start - 0.5), x2: x(start - 0.5), y1: CURVE.top, y2: height - 4 }),
      );
  }
}
