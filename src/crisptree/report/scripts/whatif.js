// Edited values of a row, predicted in the page by the code of the JavaScript export.

const WHAT_IF = DATA.samples?.what_if
  ? crispModel({
      columns: DATA.samples.what_if.columns,
      missingTexts: [],
      nFeatures: DATA.features.length,
      classes: DATA.regression ? [] : DATA.classes,
      trees: [
        {
          left: DATA.samples.what_if.left.values,
          right: DATA.samples.what_if.right.values,
          index: null,
          start: null,
          weight: DATA.samples.what_if.weight.values,
          bias: DATA.samples.what_if.bias.values,
          tables: DATA.tree.tables.values,
          slopes: DATA.samples.what_if.slopes?.values,
          offsets: DATA.samples.what_if.offsets?.values,
        },
      ],
    })
  : null;

const UNKNOWN = "\u0000"; // a level that training did not know has no letters in common with any that it knew

// The columns of a sample, from the features that the tree sees.
function columnsOf(sample) {
  const features = DATA.samples.what_if.rows.row(sample);
  return DATA.samples.what_if.columns.map((column) => {
    const own = column.kind === "category" ? column.categories.length : 1;
    if (column.missing && features[column.feature + own] > 0) return null;
    if (column.kind !== "category") return features[column.feature];
    const level = column.categories.findIndex((_, place) => features[column.feature + place] > 0);
    return level < 0 ? UNKNOWN : column.categories[level];
  });
}

// How many samples get, unedited, the leaf that the model itself gave them, and from a linear model in it the class:
// all of them, or the part is not shown.
function agreeing() {
  const { count: all, leaf, predicted, what_if: model } = DATA.samples;
  const agrees = (sample) => {
    const row = model.rows.row(sample);
    if (WHAT_IF.leaf(row) !== leaf.at(sample)) return false;
    return !model.slopes || DATA.regression || largest(WHAT_IF.predictProba(row)) === predicted.at(sample);
  };
  return Array.from({ length: all }, (_, sample) => sample).filter(agrees).length;
}

const WHAT_IF_AGREES = WHAT_IF !== null && agreeing() === DATA.samples.count;
if (WHAT_IF) document.documentElement.dataset.whatif = String(WHAT_IF_AGREES);

function whatIf(sample, listener) {
  const row = columnsOf(sample),
    features = DATA.samples.what_if.rows.row(sample).slice();
  const prediction = make("p", { class: "answer", "aria-live": "polite" });
  const rows = [];
  const predict = (place = null) => {
    try {
      if (place !== null) WHAT_IF.setColumn(features, place, row[place]);
    } catch (error) {
      prediction.replaceChildren(error.message);
      return;
    }
    const leaf = WHAT_IF.leaf(features),
      table = WHAT_IF.predictProba(features),
      best = largest(table),
      moved = leaf !== DATA.samples.leaf.at(sample),
      changed = moved || (!DATA.regression && best !== DATA.samples.predicted.at(sample));
    prediction.replaceChildren(
      changed ? "then predicted " : "predicted ",
      ...(DATA.regression ? [valuesInWords(table)] : [className(best), ` ${percent(table[best])}`]),
      " in ",
      nodeButton(N_SPLITS + leaf, listener),
      make(
        "span",
        { class: changed ? "tag moved" : "tag" },
        moved ? "another leaf" : changed ? "another class" : "as before",
      ),
    );
    listener.follow(pathTo(N_SPLITS + leaf));
  };
  const reset = () => {
    columnsOf(sample).forEach((value, place) => (row[place] = value));
    features.set(DATA.samples.what_if.rows.row(sample));
    rows.forEach((edit) => edit.show());
    predict();
  };
  for (const { column } of DATA.samples.columns) rows.push(editor(column, row, predict));
  predict();
  return make(
    "div",
    { class: "what-if" },
    prediction,
    make(
      "div",
      { class: "scroll" },
      rows.map((edit) => edit.element),
    ),
    make("p", {}, button("Reset", reset, { class: "quiet" })),
    moreColumns("stay as they are"),
  );
}

function moreColumns(what) {
  const { columns, more_columns: more } = DATA.samples;
  return more > 0 ? hint(`The ${columns.length} columns with the most influence; ${count(more)} more ${what}.`) : null;
}

// A line with the name of a column and what its value is set with; show() writes the value of the row into it.
function editor(place, row, predict) {
  const column = DATA.samples.what_if.columns[place];
  const edit = column.kind === "number" ? numberEditor : levelEditor;
  const change = (value) => {
    row[place] = value;
    predict(place);
  };
  const inner = edit(column, () => row[place], change);
  inner.show();
  const label = make("label", { class: "edit" }, make("span", { class: "name", title: column.name }, column.name));
  label.append(...inner.elements);
  return { element: label, show: inner.show };
}

function numberEditor(column, value, change) {
  const { low, high, whole } = column;
  const named = { "aria-label": column.name };
  const field = make("input", {
    ...named,
    type: "number",
    step: "any",
    placeholder: column.missing || column.fill !== null ? "missing" : "a number",
  });
  const slides = low !== null && high > low;
  const slider = slides
    ? make("input", { ...named, type: "range", min: low, max: high, step: whole ? 1 : (high - low) / 1000 })
    : null;
  const show = () => {
    field.value = value() === null ? "" : String(Number(value().toPrecision(7)));
    if (slider) slider.value = value() ?? column.fill ?? low;
  };
  field.addEventListener("input", () => {
    change(field.value === "" ? null : Number(field.value));
    if (slider && field.value !== "") slider.value = field.value;
  });
  slider?.addEventListener("input", () => {
    change(Number(slider.value));
    show();
  });
  return { elements: slider ? [slider, field] : [field], show };
}

function levelEditor(column, value, change) {
  const words = column.kind === "boolean" ? ["false", "true"] : column.categories;
  const choices = words.map((name, number) => [name, column.kind === "boolean" ? number : name]);
  if (column.kind === "category") choices.push(["not known", UNKNOWN]);
  if (column.missing) choices.push(["missing", null]);
  const field = make(
    "select",
    { "aria-label": column.name },
    choices.map(([name], number) => make("option", { value: number }, name)),
  );
  const show = () => {
    field.value = String(choices.findIndex(([, known]) => known === value()));
  };
  field.addEventListener("change", () => change(choices[Number(field.value)][1]));
  return { elements: [field], show };
}
