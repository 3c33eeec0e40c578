// Importances: a bar for every column, or a heat map of pixels.

const FIRST_COLUMNS = 12;

// One bar for every column; a press finds the splits that look at it.
function importanceList(holder, search) {
  const list = make("div", { class: "importances" });
  const [, most] = DATA.importances[0];
  const entry = ([name, share]) => {
    const fill = make("span", { class: "fill" });
    fill.style.width = `${(100 * share) / most}%`;
    return make(
      "div",
      { class: "bar" },
      button(name, () => search(name), { class: "link", title: `Find the splits that look at ${name}` }),
      make("span", { class: "track" }, fill),
      make("span", { class: "value" }, percent(share)),
    );
  };
  const draw = (number) => list.replaceChildren(...DATA.importances.slice(0, number).map(entry));
  draw(FIRST_COLUMNS);
  const more = button("Show all", () => (draw(DATA.importances.length), (more.hidden = true)), { class: "quiet" });
  more.hidden = DATA.importances.length <= FIRST_COLUMNS;
  holder.append(
    hint("Shares of the information gain in training, a category's levels added up. Press one to find its splits."),
    list,
    more,
  );
}

const HEAT = [
  [247, 247, 245],
  [250, 190, 90],
  [200, 70, 50],
  [70, 15, 60],
];

// The importance of every pixel as a heat map, with its scale.
function importanceMap(holder) {
  const { values, shape: sides } = DATA.pixel_importances;
  const most = Math.max(...values) || 1;
  const paint = (share) => {
    const at = share * (HEAT.length - 1),
      step = Math.min(Math.floor(at), HEAT.length - 2);
    return HEAT[step].map((from, index) => from + (at - step) * (HEAT[step + 1][index] - from));
  };
  const map = canvasOf(sides[0], sides[1], (place) => paint(values[place] / most), "Importance of every pixel");
  const scale = canvasOf(1, 100, (place) => paint(place / 99), `Colors from 0 to ${percent(most)}`);
  holder.append(
    hint("Share of the information gain in training that falls to every pixel."),
    make("div", { class: "heat" }, map, make("div", { class: "heat-scale" }, "0", scale, percent(most))),
  );
}
