// Event handlers of a selection: the one script that knows all parts of the page.

const byId = (id) => document.getElementById(id);
const panel = byId("panel");

const listener = {
  select(node) {
    tree.showPath([]);
    tree.select(node);
    markSample(null);
    fill(isSplit(node) ? splitPanel(node, listener) : leafPanel(node, listener));
  },
  pick(sample, among) {
    tree.select(null);
    tree.showPath(samplePath(sample));
    markSample(sample);
    fill(samplePanel(sample, among, listener));
    bringIntoSight(byId("tree"));
  },
  follow(nodes) {
    tree.showPath(nodes);
  },
  cell(place) {
    if (place) gallery.showCell(place);
  },
  filter(wrongOnly) {
    confusion?.select(null);
    gallery.showAll(wrongOnly);
  },
};

function fill(parts) {
  const focusInside = panel.contains(document.activeElement);
  panel.replaceChildren(closeButton(), ...parts.filter((part) => part !== null));
  panel.scrollTop = 0;
  // A screen reader hears what was selected, not the whole panel.
  byId("said").textContent = `${panel.querySelector("h3").textContent}: details beside the tree`;
  if (focusInside) panel.focus({ preventScroll: true });
}

function closeButton() {
  return button("×", clear, {
    class: "close",
    "aria-label": "Clear the selection",
    title: "Clear the selection (Esc)",
  });
}

function clear() {
  tree.showPath([]);
  tree.select(null);
  markSample(null);
  panel.replaceChildren(...welcome());
  byId("said").textContent = "";
}

function markSample(sample) {
  document.querySelectorAll("[data-sample][aria-current]").forEach((old) => old.removeAttribute("aria-current"));
  if (sample !== null)
    document.querySelectorAll(`[data-sample="${sample}"]`).forEach((now) => now.setAttribute("aria-current", "true"));
}

function bringIntoSight(element) {
  const { top } = element.getBoundingClientRect();
  if (top < 0 || top > innerHeight / 2)
    element.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

// Search: words match class names and the columns that a split looks at, "leaf 3" and "split 3" match that node.
function matching(words) {
  const text = words.trim().toLowerCase().replace(/\s+/g, " ");
  if (!text) return null;
  const classes = DATA.regression ? [] : DATA.classes;
  const exact = classes.findIndex((name) => name.toLowerCase() === text);
  if (exact >= 0) return leavesOf(exact);
  const found = splitsOn(text);
  for (let node = 0; node < N_NODES; node++) {
    const isNamed = nodeName(node) === text;
    if (isNamed || (!isSplit(node) && classes[majorityOf(node)]?.toLowerCase().includes(text))) found.add(node);
  }
  return found;
}

// The splits with a weight for a feature of such a name.
function splitsOn(text) {
  const found = new Set();
  if (!DATA.weights?.features) return found;
  const named = new Set(DATA.features.flatMap((name, number) => (name.toLowerCase().includes(text) ? [number] : [])));
  if (!named.size) return found;
  const { features, raw, used } = DATA.weights;
  for (let split = 0; split < N_SPLITS; split++) {
    const looks = used
      ? [...named].some((feature) => used.row(split)[feature])
      : features.row(split).some((feature, place) => named.has(feature) && raw.row(split)[place]);
    if (looks) found.add(split);
  }
  return found;
}

function leavesOf(number) {
  const found = new Set();
  for (let node = N_SPLITS; node < N_NODES; node++) if (majorityOf(node) === number) found.add(node);
  return found;
}

const MOST_WORDS = 400;

function wordsToSearch() {
  const columns = (DATA.importances ?? []).map(([name]) => name);
  return [...new Set([...(DATA.regression ? [] : DATA.classes), ...columns])].slice(0, MOST_WORDS);
}

function searchFor(text) {
  byId("query").value = text;
  showMatches(matching(text));
  bringIntoSight(byId("tree"));
}

let step = -1;

function showMatches(matches) {
  step = -1;
  tree.search(matches);
  const leaves = matches ? [...matches].filter((node) => !isSplit(node)).length : 0;
  const splits = matches ? matches.size - leaves : 0;
  const words = [
    leaves && `${count(leaves)} ${leaves === 1 ? "leaf" : "leaves"}`,
    splits && `${count(splits)} ${splits === 1 ? "split" : "splits"}`,
  ].filter(Boolean);
  byId("found").textContent = matches ? words.join(", ") || "nothing found" : "";
  for (const chip of byId("legend").children) chip.setAttribute("aria-pressed", "false");
}

function nextMatch() {
  if (!tree.matches?.size) return;
  const order = [...tree.matches];
  step = (step + 1) % order.length;
  listener.select(order[step]);
  byId("found").textContent = `${step + 1} of ${order.length}: ${nodeName(order[step])}`;
}

function drawLegend() {
  if (DATA.regression) return;
  byId("legend").append(
    ...DATA.classes.map((name, number) =>
      make(
        "button",
        {
          type: "button",
          class: "chip",
          "aria-pressed": "false",
          title: `Mark the leaves of ${name}`,
          onclick: (event) => markClass(number, event.currentTarget),
        },
        className(number),
      ),
    ),
  );
}

function markClass(number, chip) {
  const pressed = chip.getAttribute("aria-pressed") === "true";
  byId("query").value = "";
  showMatches(pressed ? null : leavesOf(number));
  chip.setAttribute("aria-pressed", String(!pressed));
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = dark ? "Light" : "Dark";
  byId("theme").setAttribute("aria-pressed", String(dark));
  byId("theme").setAttribute("aria-label", `Switch to ${dark ? "light" : "dark"} colors`);
}

function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

const darkWanted = matchMedia("(prefers-color-scheme: dark)");
darkWanted.addEventListener("change", (event) => setTheme(event.matches));
setTheme(darkWanted.matches);
byId("theme").addEventListener("click", () => setTheme(!isDark()));

drawLegend();
panel.append(...welcome());
const tree = new TreeView(byId("canvas"), listener);
const confusion = DATA.confusion ? new Confusion(byId("confusion"), listener) : null;
const gallery = DATA.samples ? new Gallery(byId("gallery"), listener) : null;
if (DATA.error_attribution?.length) attributionTable(byId("blame"), listener);
if (DATA.roc) qualityOf(byId("quality"));
if (DATA.residuals) DATA.residuals.forEach((output) => residualsOf(byId("quality"), output));
if (DATA.importances?.length) importanceList(byId("importances"), searchFor);
if (DATA.pixel_importances) importanceMap(byId("importances"));
if (DATA.pruning) pruningCurves(byId("pruning"));
byId("words").append(...wordsToSearch().map((value) => make("option", { value })));

const VIEWS = {
  in: () => tree.view.zoomBy(1.3),
  out: () => tree.view.zoomBy(1 / 1.3),
  fit: () => tree.fit(),
  expand: () => tree.unfold(),
  collapse: () => tree.fold(),
};
for (const [name, act] of Object.entries(VIEWS))
  document.querySelector(`[data-view="${name}"]`).addEventListener("click", act);
byId("query").addEventListener("input", (event) => showMatches(matching(event.target.value)));
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  nextMatch();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  byId("query").value = "";
  showMatches(null);
  clear();
});
document.documentElement.dataset.ready = "true";
