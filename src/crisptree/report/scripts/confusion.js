// The confusion matrix, the gallery of samples beside it, and the table of splits that cause errors.

class Confusion {
  constructor(holder, listener) {
    this.holder = holder;
    this.listener = listener;
    this.selected = null;
    this.focused = [0, 0];
    this.draw();
    new ResizeObserver(() => this.resized()).observe(holder);
  }

  draw() {
    const labels = DATA.classes.map((name, number) =>
      make("th", { scope: "col", title: name }, make("span", {}, name), swatch(number)),
    );
    this.body = make(
      "tbody",
      {},
      DATA.classes.map((name, truth) =>
        make(
          "tr",
          { role: "row" },
          make("th", { scope: "row", title: name }, make("span", {}, name), swatch(truth)),
          DATA.classes.map((_, predicted) => this.cell(truth, predicted)),
        ),
      ),
    );
    this.table = make(
      "table",
      {
        class: "confusion",
        role: "grid",
        "aria-label": "Confusion matrix: rows are true classes, columns predicted ones",
        onclick: (event) => this.pressed(event.target.closest("td")),
        onkeydown: (event) => this.key(event),
      },
      make("thead", {}, make("tr", { role: "row" }, make("td", { class: "corner" }), labels)),
      this.body,
    );
    const long = Math.max(...DATA.classes.map((name) => name.length)) > 3;
    this.table.classList.toggle("long-names", long);
    this.table.classList.toggle("upright", long && N_CLASSES > 5);
    this.holder.replaceChildren(
      hint("Rows are true classes, columns predicted ones. Select a cell to see its samples."),
      this.table,
    );
    this.mark();
  }

  cell(truth, predicted) {
    const rows = DATA.confusion.row(truth)[predicted];
    const share = rows / (total(DATA.confusion.row(truth)) || 1);
    const words = `true ${DATA.classes[truth]}, predicted ${DATA.classes[predicted]}: ${count(rows)} rows`;
    const cell = make(
      "td",
      {
        role: "gridcell",
        tabindex: -1,
        "data-true": truth,
        "data-predicted": predicted,
        class: truth === predicted ? "right" : "wrong",
        "aria-label": words,
        title: `${words} (${percent(share)})`,
      },
      make("span", {}, rows ? count(rows) : "·"),
    );
    // A root shows the few errors next to the many correct predictions. At most half of a color, light or dark, so that
    // the numbers stay readable on it.
    cell.style.setProperty(
      "--share",
      rows ? `${Math.round(8 + 40 * Math.sqrt(truth === predicted ? share * 0.7 : Math.min(share * 4, 1)))}%` : "0%",
    );
    if (!rows) cell.classList.add("empty");
    return cell;
  }

  resized() {
    const { width } = this.table.querySelector("tbody td").getBoundingClientRect();
    this.table.classList.toggle("dense", width < 27);
    this.table.classList.toggle("tiny", width < 15);
  }

  at([truth, predicted]) {
    return this.body.children[truth].querySelectorAll("td")[predicted];
  }

  mark() {
    for (const cell of this.body.querySelectorAll("td")) {
      const place = [Number(cell.dataset.true), Number(cell.dataset.predicted)];
      cell.setAttribute("tabindex", String(place) === String(this.focused) ? "0" : "-1");
      cell.setAttribute("aria-selected", String(String(place) === String(this.selected)));
    }
  }

  pressed(cell) {
    if (!cell?.dataset.true) return;
    this.select([Number(cell.dataset.true), Number(cell.dataset.predicted)]);
  }

  select(place) {
    this.selected = place;
    this.focused = place ?? this.focused;
    this.mark();
    this.listener.cell(place);
  }

  key(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key in steps) {
      const inside = (index) => Math.min(Math.max(index, 0), N_CLASSES - 1);
      this.focused = this.focused.map((index, axis) => inside(index + steps[event.key][axis]));
      this.mark();
      this.at(this.focused).focus();
    } else if (event.key === "Enter" || event.key === " ") {
      this.select(this.focused);
    } else {
      return;
    }
    event.preventDefault();
  }
}

const PAGE = DATA.image ? 48 : 12;

class Gallery {
  constructor(holder, listener) {
    this.holder = holder;
    this.listener = listener;
    this.title = make("h3", { "aria-live": "polite" });
    this.list = make("div", {});
    this.more = button("Show more", () => this.draw(this.shown + PAGE), { class: "quiet" });
    this.filters = make("p", { class: "filters" });
    holder.append(this.title, this.filters, this.list, this.more);
    this.showAll(DATA.labelled && samplesWhere(isWrong).length > 0);
  }

  showAll(wrongOnly) {
    const samples = samplesWhere(wrongOnly ? isWrong : () => true);
    const words = wrongOnly
      ? `Wrong samples: ${count(samples.length)} of ${count(wrongRows())}`
      : `Samples: ${count(samples.length)} of ${count(DATA.summary.rows)} given rows`;
    this.show(samples, words);
  }

  showCell([truth, predicted]) {
    const samples = samplesWhere(
      (sample) => trueOf(sample) === truth && DATA.samples.predicted.at(sample) === predicted,
    );
    const rows = DATA.confusion.row(truth)[predicted];
    this.show(
      samples,
      `True ${DATA.classes[truth]}, predicted ${DATA.classes[predicted]}: ${count(samples.length)} of ${count(rows)}`,
    );
  }

  show(samples, title) {
    this.samples = samples;
    this.title.textContent = title;
    this.filters.replaceChildren(
      ...(DATA.confusion ? [button("wrong ones", () => this.listener.filter(true), { class: "quiet" })] : []),
      ...(DATA.confusion ? [button("all", () => this.listener.filter(false), { class: "quiet" })] : []),
    );
    this.draw(PAGE);
  }

  draw(most) {
    this.shown = Math.min(most, this.samples.length);
    this.list.replaceChildren(
      this.samples.length
        ? sampleList(this.samples.slice(0, this.shown), { pick: (sample) => this.listener.pick(sample, this.samples) })
        : hint("The report holds no sample of this kind."),
    );
    this.more.hidden = this.shown === this.samples.length;
  }
}

function wrongRows() {
  let right = 0;
  for (let number = 0; number < N_CLASSES; number++) right += DATA.confusion.row(number)[number];
  return DATA.summary.rows - right;
}

const MAX_ATTRIBUTED = 12;

function attributionTable(holder, listener) {
  const entries = DATA.error_attribution.slice(0, MAX_ATTRIBUTED);
  const most = Math.max(...entries.map(([, errors]) => errors), 1);
  const rest = total(DATA.error_attribution.slice(MAX_ATTRIBUTED).map(([, errors]) => errors));
  holder.append(
    hint("The split of an error is the deepest one where most training rows of its true class take the other branch."),
    plainTable(
      ["split", "depth", "errors", "", "of all errors", "of rows here"],
      entries.map(([split, errors, share]) => {
        const fill = make("span", { class: "fill" });
        fill.style.width = `${(100 * errors) / most}%`;
        const known = split >= 0;
        return [
          known ? nodeButton(split, listener) : "no split",
          known ? DEPTH[split] : "–",
          count(errors),
          make("td", { class: "wide" }, make("span", { class: "track" }, fill)),
          percent(share),
          known ? percent(errors / (total(DATA.tree.given.row(split)) || 1)) : "–",
        ];
      }),
      "blame",
    ),
  );
  const others = count(DATA.error_attribution.length - entries.length);
  if (rest) holder.append(hint(`${count(rest)} more errors at ${others} other splits.`));
}
