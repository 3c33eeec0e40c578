// Small charts: stacked shares, labelled bars, signed bars, the score histogram.

function sharesStrip(shares, label) {
  const strip = make("span", { class: "strip", role: "img", "aria-label": label ?? sharesInWords(shares) });
  shares.forEach((share, number) => {
    if (share <= 0) return;
    const part = make("span", { title: `${DATA.classes[number]}: ${percent(share)}` });
    part.style.flexGrow = share;
    part.style.background = DATA.colors[number];
    strip.append(part);
  });
  return strip;
}

function ranked(shares, most = 3) {
  return shares
    .map((share, number) => [share, number])
    .filter(([share]) => share > 0)
    .sort((one, two) => two[0] - one[0])
    .slice(0, most);
}

function sharesInWords(shares, most = 3) {
  return ranked(shares, most)
    .map(([share, number]) => `${DATA.classes[number]} (${percent(share)})`)
    .join(", ");
}

const MOST_BARS = 12;

// One bar for every class with a count, the largest first.
function classBars(shares, columns) {
  const list = make("div", { class: "bars" });
  const present = shares.map((share, number) => [share, number, total(columns.map((values) => values?.[number] ?? 0))]);
  const all = present.filter(([share, , rows]) => share > 0 || rows > 0);
  const shown = all.sort((one, two) => two[0] - one[0] || two[2] - one[2]).slice(0, MOST_BARS);
  for (const [share, number] of shown) {
    const fill = make("span", { class: "fill" });
    fill.style.width = `${100 * share}%`;
    fill.style.background = DATA.colors[number];
    list.append(
      make(
        "div",
        { class: "bar" },
        className(number),
        make("span", { class: "track" }, fill),
        make("span", { class: "value" }, percent(share)),
        columns.map((values) => make("span", { class: "value muted" }, values ? count(values[number]) : "–")),
      ),
    );
  }
  const more = all.length - shown.length;
  if (more > 0) list.append(make("p", { class: "hint" }, `and ${more} classes with smaller shares`));
  return list;
}

// Bars to the right push right, bars to the left push left.
function signedBars(entries) {
  const reach = Math.max(...entries.map((entry) => Math.abs(entry.amount))) || 1;
  return make(
    "div",
    { class: "signed" },
    entries.map((entry) => {
      const fill = make("span", { class: entry.amount > 0 ? "fill right" : "fill left" });
      fill.style.width = `${(50 * Math.abs(entry.amount)) / reach}%`;
      return make(
        "div",
        { class: "bar" },
        make("span", { class: "name", title: entry.name }, entry.name),
        make("span", { class: "track" }, fill),
        make("span", { class: "value" }, entry.text ?? signed(entry.amount)),
        entry.hint === undefined ? null : make("span", { class: "value muted" }, entry.hint),
      );
    }),
  );
}

const HISTOGRAM = { width: 320, height: 120, base: 96 };

function scoreHistogram(split) {
  const { start, width, counts } = DATA.histograms;
  const bins = counts.shape[1];
  const heights = Array.from({ length: bins }, (_, bin) => total(counts.cell(split, bin)));
  const highest = Math.max(...heights);
  if (!highest) return make("p", { class: "hint" }, "None of the given rows reaches this split.");
  const used = heights.reduce((last, height, bin) => (height ? bin : last), 0) + 1;
  const zero = Math.round(-start.at(split) / width.at(split));
  const nBins = Math.max(used, zero, 1);
  const step = HISTOGRAM.width / nBins;
  const picture = shape("svg", {
    viewBox: `0 0 ${HISTOGRAM.width} ${HISTOGRAM.height}`,
    class: "chart",
    role: "img",
    "aria-label": `Scores of ${count(total(heights))} rows; those above zero go right`,
  });
  for (let bin = 0; bin < nBins; bin++) {
    let top = HISTOGRAM.base;
    counts.cell(split, bin).forEach((rows, number) => {
      if (!rows) return;
      const height = (rows / highest) * (HISTOGRAM.base - 8);
      top -= height;
      const bar = shape(
        "rect",
        { x: bin * step + 0.5, y: top, width: Math.max(step - 1, 0.5), height },
        shape("title", {}, DATA.regression ? `${count(rows)} rows` : `${DATA.classes[number]}: ${count(rows)}`),
      );
      bar.style.fill = DATA.colors[number];
      picture.append(bar);
    });
  }
  const at = (score) => ((score - start.at(split)) / width.at(split)) * step;
  picture.append(shape("line", { class: "axis", x1: 0, x2: HISTOGRAM.width, y1: HISTOGRAM.base, y2: HISTOGRAM.base }));
  picture.append(shape("line", { class: "zero", x1: at(0), x2: at(0), y1: 0, y2: HISTOGRAM.base + 4 }));
  const label = (x, anchor, text) => shape("text", { x, y: HISTOGRAM.height - 6, "text-anchor": anchor }, text);
  const place = Math.min(Math.max(at(0), 60), HISTOGRAM.width - 60);
  picture.append(
    label(0, "start", short(start.at(split))),
    label(place, "middle", "← left  0  right →"),
    label(HISTOGRAM.width, "end", short(start.at(split) + nBins * width.at(split))),
  );
  return picture;
}
