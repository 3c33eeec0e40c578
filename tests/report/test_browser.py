"""The page in a browser: the system's chromium, driven by playwright; nothing is downloaded."""

import os
import shutil
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from crisptree import CrispTreeClassifier, explain, export
from crisptree.datasets import load_digits
from crisptree.encoding.preprocessing import Column, Preprocessing
from crisptree.inference.finalization import finalize
from crisptree.inspection import view_model
from crisptree.report import write
from tests.export.models import of_table
from tests.plots.models import random_model
from tests.report.conftest import EVIL, EVIL_FEATURE, KINDS, fitted
from tests.toys import plain_regressor, plain_tree

pytestmark = pytest.mark.browser

ONES = np.ones(40)

SIZES = {"desktop": {"width": 1440, "height": 900}, "phone": {"width": 375, "height": 740}}
READY = "document.documentElement.dataset.ready === 'true'"


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="run make test-browser")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed; run make test-browser")
    options = ["--no-sandbox"] if os.getuid() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=options)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Open a page from disk; afterwards there must have been no complaint and no request but for the page itself."""

    @contextmanager
    def opened(path, size="desktop", scheme="light"):
        tab = chromium.new_page(viewport=SIZES[size], color_scheme=scheme, has_touch=size == "phone")
        complaints, requests = [], []
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.on("dialog", lambda dialog: complaints.append(dialog.message))
        tab.set_default_timeout(60_000)
        tab.goto(path.as_uri())
        tab.wait_for_function(READY)
        yield tab
        assert tab.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
        tab.close()
        assert complaints == []
        assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]

    return opened


@pytest.fixture(scope="module")
def digits_page(tmp_path_factory):
    digits = load_digits()
    model = plain_tree(max_depth=5, epochs=6, finetune_epochs=6, image_shape=(8, 8), random_state=0)
    model.fit(digits.X_train, digits.y_train, eval_set=(digits.X_valid, digits.y_valid))
    path = tmp_path_factory.mktemp("pages") / "digits.html"
    names = [*map(str, range(9)), EVIL]
    return write(model, path, digits.X_test, digits.y_test, class_names=names, title="Digits"), model, digits


@pytest.fixture(scope="module")
def table_page(tmp_path_factory):
    model, X, y = fitted(n_classes=3)
    names = [EVIL_FEATURE, "a feature with a name that is much too long for its box", "b", "c", "d", "e"]
    wrong = np.where(np.arange(len(y)) % 9 == 0, (y + 1) % 3, y)
    path = tmp_path_factory.mktemp("pages") / "table.html"
    return write(model, path, X, wrong, feature_names=names, class_names=["low", "middle", EVIL])


def press(tab, node):
    """Click the middle of a node, whatever is drawn there."""
    face = tab.locator(f"[data-node='{node}'] .face")
    face.scroll_into_view_if_needed()
    box = face.bounding_box()
    tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def text_of(tab, place):
    return tab.locator(place).inner_text()


@pytest.mark.parametrize("size", SIZES)
def test_a_split_shows_its_weights_scores_and_counts(size, visit, digits_page):
    path, model, _ = digits_page
    with visit(path, size) as tab:
        assert "Nothing selected" in text_of(tab, "#panel")
        press(tab, 0)
        assert "Split 0" in text_of(tab, "#panel h3")
        captions = tab.locator("#panel figcaption").all_inner_texts()
        assert captions == ["linear grey", "red left, blue right"]
        assert tab.locator("#panel svg.chart rect").count() > 5
        counts = tab.locator("#panel table tbody tr").first.locator("td").all_inner_texts()
        assert counts == [f"{model.tree_.statistics.node_counts[0].sum():,.0f}", "360"]
        assert tab.get_attribute("[data-node='0']", "aria-selected") == "true"


@pytest.mark.parametrize("size", SIZES)
def test_a_search_leads_to_leaves_and_a_leaf_shows_classes_and_examples(size, visit, digits_page):
    path, model, _ = digits_page
    with visit(path, size) as tab:
        tab.fill("#query", "leaf 3")
        assert text_of(tab, "#found") == "1 leaf"
        tab.press("#query", "Enter")
        assert text_of(tab, "#panel h3") == "Leaf 3"
        assert tab.locator("#panel .bars .bar").count() >= 1
        node = model.tree_.structure.n_splits + 3
        assert tab.locator(f"[data-node='{node}'][aria-selected='true']").count() == 1
        tab.fill("#query", "0")
        found = int(np.sum(model.tree_.labels() == 0))
        assert text_of(tab, "#found") == f"{found} {'leaf' if found == 1 else 'leaves'}"
        tab.fill("#query", "no such class")
        assert text_of(tab, "#found") == "nothing found"


@pytest.mark.parametrize("size", SIZES)
def test_a_cell_of_the_confusion_matrix_selects_its_samples_and_a_sample_lights_its_path(size, visit, digits_page):
    path, model, digits = digits_page
    predicted = model.predict(digits.X_test)
    row = int(np.flatnonzero(predicted != digits.y_test)[0])
    truth, guess = int(digits.y_test[row]), int(predicted[row])
    expected = int(np.sum((digits.y_test == truth) & (predicted == guess)))
    with visit(path, size) as tab:
        tab.click(f"#confusion td[data-true='{truth}'][data-predicted='{guess}']")
        assert tab.locator("#gallery [data-sample]").count() == expected
        assert f"{expected} of {expected}" in text_of(tab, "#gallery h3")
        tab.click("#gallery [data-sample] >> nth=0")
        assert text_of(tab, "#panel h3") == f"Row {row}"
        way = model.tree_.structure.nodes_to(int(model.leaf_indices(digits.X_test[row : row + 1])[0]))
        lit = tab.locator(".node.on-path").evaluate_all("nodes => nodes.map(node => Number(node.dataset.node))")
        assert sorted(lit) == sorted(way)
        assert tab.locator("#panel .steps li").count() == len(lit) - 1
        words = text_of(tab, "#panel")
        assert "standard deviations from the boundary" in words
        assert "pushes: red left, blue right" in words
        assert "at a distance of" in words
        assert "before" in words
        tab.keyboard.press("Escape")
        assert tab.locator(".node.on-path").count() == 0


def test_folding_and_unfolding(visit, digits_page):
    path, model, _ = digits_page
    with visit(path) as tab:
        shown = tab.locator(".node").count()
        tab.click("[data-node='1'] .fold")
        assert tab.get_attribute("[data-node='1']", "aria-expanded") == "false"
        assert tab.locator(".node").count() < shown
        tab.click("[data-view='expand']")
        assert tab.locator(".node").count() == model.tree_.structure.n_nodes
        tab.click("[data-view='collapse']")
        assert tab.locator(".node").count() == shown


OVERLAPS = """
() => {
  const boxes = [...document.querySelectorAll("[data-node]")].map((node) => node.getBoundingClientRect());
  const meet = (one, other) =>
    Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1 &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 1;
  return boxes.flatMap((one, place) => boxes.slice(place + 1).filter((other) => meet(one, other))).length;
}
"""
"""Number of pairs of nodes, their text included, that overlap."""


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_no_nodes_of_a_tree_of_60_leaves_overlap(kind, visit, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 4)), columns=["monthly income in euros", "b", "c", "d"])
    score = X.to_numpy() @ rng.normal(size=(4, 3)) + rng.normal(size=(600, 3))
    if kind == "regression":
        model, y = plain_regressor(max_depth=6), score[:, 0]
    else:
        model, y = (
            plain_tree(max_depth=6),
            np.array(["becomes a gold member", "leaves the bank", "stays"])[score.argmax(1)],
        )
    model.fit(X, y)
    path = write(model, tmp_path / "large.html", X, y)
    with visit(path) as tab:
        tab.set_viewport_size({"width": 1400, "height": 900})
        assert 3 < tab.locator(".node").count() < model.tree_.structure.n_nodes  # some are folded
        assert tab.evaluate(OVERLAPS) == 0
        tab.click("[data-view='expand']")
        assert tab.locator(".node").count() == model.tree_.structure.n_nodes > 80
        assert tab.evaluate(OVERLAPS) == 0
        heights = tab.locator(".node text").evaluate_all("all => all.map(t => t.getBoundingClientRect().height)")
        assert min(heights) > 8
        tab.click("[data-view='fit']")
        assert tab.evaluate(OVERLAPS) == 0


def test_the_pixels_of_images_have_a_heat_map(visit, digits_page):
    path, model, _ = digits_page
    with visit(path) as tab:
        assert tab.locator("#importances .heat > canvas").evaluate("map => [map.width, map.height]") == [8, 8]
        shares = explain.feature_importances(model)
        shown = tab.evaluate("""() => {
            const map = document.querySelector("#importances .heat > canvas");
            return [...map.getContext("2d").getImageData(0, 0, 8, 8).data].filter((_, place) => place % 4 === 1);
        }""")
        assert int(np.argmin(shown)) == int(shares.argmax())


def test_the_tree_can_be_dragged_and_zoomed(visit, digits_page):
    def place(tab):
        return tab.get_attribute("#canvas > g", "transform")

    with visit(digits_page[0]) as tab:
        tab.locator("#pane").scroll_into_view_if_needed()
        box = tab.locator("#pane").bounding_box()
        start = place(tab)
        tab.mouse.move(box["x"] + 30, box["y"] + 40)
        tab.mouse.down()
        tab.mouse.move(box["x"] + 130, box["y"] + 90, steps=4)
        tab.mouse.up()
        dragged = place(tab)
        tab.click("[data-view='in']")
        zoomed = place(tab)
        tab.keyboard.down("Control")
        tab.mouse.move(box["x"] + 200, box["y"] + 200)
        tab.mouse.wheel(0, 200)
        tab.keyboard.up("Control")
        tab.wait_for_function(
            "before => document.querySelector('#canvas > g').getAttribute('transform') !== before", arg=zoomed
        )
        assert len({start, dragged, zoomed, place(tab)}) == 4
        assert "Nothing selected" in text_of(tab, "#panel")  # a drag is no click


def test_everything_works_with_the_keyboard(visit, digits_page):
    path, model, _ = digits_page
    structure = model.tree_.structure

    def focused(tab):
        return tab.evaluate("Number(document.activeElement.dataset.node)")

    with visit(path) as tab:
        tab.focus("[data-node='0']")
        tab.keyboard.press("ArrowDown")
        assert focused(tab) == structure.left_nodes[0]
        tab.keyboard.press("ArrowRight")
        assert focused(tab) == structure.right_nodes[0]
        tab.keyboard.press("Enter")
        assert text_of(tab, "#panel h3") == f"Split {structure.right_nodes[0]}"
        tab.keyboard.press("Space")
        assert tab.get_attribute(f"[data-node='{structure.right_nodes[0]}']", "aria-expanded") == "false"
        tab.keyboard.press("ArrowUp")
        assert focused(tab) == 0
        tab.keyboard.press("Escape")
        assert "Nothing selected" in text_of(tab, "#panel")
        assert focused(tab) == 0
        tab.focus("#confusion td[tabindex='0']")
        tab.keyboard.press("ArrowDown")
        tab.keyboard.press("ArrowRight")
        tab.keyboard.press("Enter")
        assert text_of(tab, "#gallery h3").startswith("True 1, predicted 1")
        tab.focus("#gallery [data-sample] >> nth=0")
        tab.keyboard.press("ArrowRight")
        assert tab.evaluate("document.activeElement.dataset.sample") is not None
        tab.keyboard.press("Enter")
        assert "Sample 2 of" in text_of(tab, "#panel .eyebrow")


def test_tab_reaches_every_part_and_its_focus_is_visible(visit, digits_page):
    with visit(digits_page[0]) as tab:
        seen = set()
        for _ in range(40):
            tab.keyboard.press("Tab")
            seen.add(
                tab.evaluate(
                    """() => {
                      const here = document.activeElement;
                      if (here === document.body) return 'the end';
                      const style = getComputedStyle(here.querySelector('.face') ?? here);
                      const visible = style.outlineStyle !== 'none' || style.strokeDasharray !== 'none';
                      if (!visible) return `invisible focus: ${here.tagName} ${here.id}`;
                      return here.closest('[id]')?.id ?? 'nowhere';
                    }"""
                )
            )
        assert not [where for where in seen if where.startswith("invisible")]
        assert {"theme", "query", "legend", "canvas", "pane", "confusion", "gallery", "blame"} <= seen


def test_dark_and_light_follow_the_system_and_the_button(visit, digits_page):
    background = "getComputedStyle(document.body).backgroundColor"
    with visit(digits_page[0], scheme="dark") as tab:
        dark = tab.evaluate(background)
        tab.click("#theme")
        light = tab.evaluate(background)
        assert dark != light
        tab.click("#theme")
        assert tab.evaluate(background) == dark
    with visit(digits_page[0], scheme="light") as tab:
        assert tab.evaluate(background) == light


@pytest.mark.parametrize("size", SIZES)
def test_strange_names_show_as_text(size, visit, digits_page, table_page):
    with visit(digits_page[0], size) as tab:
        assert EVIL in text_of(tab, "#legend")
        tab.click("#legend .chip >> nth=9")
        assert "lea" in text_of(tab, "#found")
    with visit(table_page, size) as tab:
        press(tab, 0)
        assert EVIL_FEATURE in text_of(tab, "#panel")
        assert tab.locator("img").count() == 0


@pytest.mark.parametrize("size", SIZES)
def test_tabular_samples_show_pushes_changes_and_values(size, visit, table_page):
    with visit(table_page, size) as tab:
        tab.click("#gallery [data-sample] >> nth=0")
        assert tab.locator("#panel .steps .signed .bar").count() > 2
        words = text_of(tab, "#panel")
        assert "The smallest change to another class" in words
        assert "at a distance of" in words
        assert EVIL_FEATURE in words
        tab.click("#panel .link >> nth=0")
        assert text_of(tab, "#panel h3").startswith("Split")
        tab.click("#blame .link >> nth=0")
        assert "Responsible for" in text_of(tab, "#panel")


@pytest.mark.parametrize("kind", KINDS)
def test_pages_of_every_kind_react_to_clicks(kind, visit, tmp_path):
    model, X, y = fitted(**KINDS[kind])
    full = write(model, tmp_path / "full.html", X, (y + 1) % len(model.classes_))
    bare = write(model, tmp_path / "bare.html")
    unlabelled = write(model, tmp_path / "unlabelled.html", X)
    for path, has_samples in ((full, True), (bare, False), (unlabelled, True)):
        for size in SIZES:
            with visit(path, size) as tab:
                press(tab, 0)
                assert text_of(tab, "#panel h3") in ("Split 0", "Leaf 0")
                if has_samples:
                    tab.click("#gallery [data-sample] >> nth=0")
                    assert text_of(tab, "#panel h3").startswith("Row")


def test_a_split_that_no_training_row_reaches_shows_the_classes_above_it(visit, tmp_path):
    model = random_model(n_features=1, depth=2, n=40)
    model.tree_.weight[:], model.tree_.bias[:] = 1.0, (9.0, 0.0, 0.0)  # all go right at the root
    model.tree_ = finalize(model.tree_, np.linspace(-1, 1, 40, dtype=np.float32)[:, None], np.arange(40) % 3, ONES, 0.0)
    with visit(write(model, tmp_path / "page.html")) as tab:
        above, below = (tab.locator(f"[data-node='{node}'] title").first.text_content() for node in (0, 1))
        assert above.split("\n")[0].split(": ", 1)[1] == below.split("\n")[0].split(": ", 1)[1]


@pytest.fixture(scope="module")
def churn_page(tmp_path_factory):
    """A table with a category, a missing value, ids and long names."""
    columns = (
        Column("months since the contract was signed", "number"),
        Column("contract", "category", categories=("month to month", "<i>yearly</i>", "two years")),
        Column("calls to the support in the last quarter", "number", mean=1.0, missing=True),
    )
    rng = np.random.default_rng(0)
    X = np.zeros((400, 6), dtype=np.float32)
    X[:, 0], X[np.arange(400), 1 + rng.integers(0, 3, 400)] = rng.integers(0, 60, 400), 1
    X[:, 4], X[:20, 5] = rng.poisson(1.5, 400), 1
    score = X[:, 1] * 2 - X[:, 0] / 20 + X[:, 4] / 2 + rng.normal(size=400) / 2
    y = np.select([score > 1.5, score > 0], ["left for somebody else", "left"], "stayed")
    model = plain_tree(max_depth=3, epochs=6, finetune_epochs=4, random_state=0).fit(X, y)
    model.preprocessing_ = Preprocessing(columns, target="churn")
    ids = [f"customer {number}" for number in range(400)]
    return write(model, tmp_path_factory.mktemp("pages") / "churn.html", X, y, ids=ids), model


@pytest.mark.parametrize("size", SIZES)
def test_a_table_is_shown_in_its_own_columns_units_and_ids(size, visit, churn_page):
    path, model = churn_page
    with visit(path, size) as tab:
        assert text_of(tab, "h1") == "Decision tree for churn"
        assert "always" in text_of(tab, ".cards")
        press(tab, 0)
        rule = text_of(tab, "#panel .rule")
        assert "months since the contract was signed" in rule
        assert rule in tab.locator("[data-node='0'] title").first.text_content()
        tab.click("#gallery [data-sample] >> nth=0")
        assert text_of(tab, "#panel h3").startswith("Row customer ")
        words = text_of(tab, "#panel")
        assert "Values stay such as training has seen" in words or "No leaf of another class" in words
        names = tab.locator("#importances .link").all_inner_texts()
        assert set(names) <= {
            "contract",
            "months since the contract was signed",
            "calls to the support in the last quarter",
        }
        assert tab.locator("#quality tbody tr").count() == 3
        assert tab.locator("#quality path.curve").count() == 4  # of three classes, and calibration
        assert tab.locator("#pruning tbody tr").count() == len(model.cost_complexity_pruning_path().n_leaves)


def test_splits_on_one_column_read_as_sentences_do(visit, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"plan": rng.choice(["basic", "plus", "pro"], 400), "income": rng.integers(10_000, 90_000, 400)})
    y = np.where(X["plan"] == "pro", "a", np.where(X["income"] > 35_160, "b", "c"))
    model = CrispTreeClassifier.readable(max_features_per_split=1, random_state=0).fit(X, y)
    page = write(model, tmp_path / "report.html", X, y)
    with visit(page) as tab:
        lines = tab.locator("#tree .node.split text").all_text_contents()
    assert lines[lines.index("plan") + 1] in ("is pro", "is not pro", "in {basic, plus}")
    bound = lines[lines.index("income") + 1]
    assert f"income {bound}?" in export.text(model)
    assert len(bound) >= len("> 35000")  # all digits, not three


def test_all_leaves_are_open_where_they_fit(visit, churn_page):
    path, model = churn_page
    with visit(path) as tab:
        assert tab.locator(".node").count() == model.tree_.structure.n_nodes


def test_a_search_finds_columns_and_dims_nothing_where_nothing_is_found(visit, churn_page):
    path, model = churn_page
    opacities = "[...document.querySelectorAll('.node')].map((node) => Number(getComputedStyle(node).opacity))"
    with visit(path) as tab:
        tab.fill("#query", "SUPPORT")
        looking = int(np.count_nonzero(model.tree_.weight[:, [4, 5]].any(axis=1)))
        assert text_of(tab, "#found") == f"{looking} {'split' if looking == 1 else 'splits'}"
        assert min(tab.evaluate(opacities)) < 1
        tab.fill("#query", "no such thing")
        assert text_of(tab, "#found") == "nothing found"
        assert set(tab.evaluate(opacities)) == {1}
        tab.fill("#query", "stayed")
        tab.click("#gallery [data-sample] >> nth=0")
        lit = tab.locator(".node.on-path").evaluate_all("nodes => nodes.map((node) => getComputedStyle(node).opacity)")
        assert set(lit) == {"1"}
        tab.click("#importances .link >> nth=0")
        assert "split" in text_of(tab, "#found")


CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const light = (color) => {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const linear = [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((part) => {
      const share = part / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  return [...document.querySelectorAll('#confusion tbody td:not(.empty)')].map((cell) => {
    const style = getComputedStyle(cell);
    const [one, two] = [light(style.color), light(style.backgroundColor)].sort((a, b) => b - a);
    return (one + 0.05) / (two + 0.05);
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_counts_of_the_confusion_matrix_have_enough_contrast(scheme, visit, tmp_path):
    model, X, y = fitted(n_classes=3)
    page = write(model, tmp_path / "page.html", X, (y + 1) % 3)  # all of it wrong, so red is at its darkest
    with visit(page, scheme=scheme) as tab:
        assert min(tab.evaluate(CONTRAST)) >= 4.5


@pytest.fixture(scope="module")
def edited_page(tmp_path_factory):
    """A table with every kind of column. (page, model, columns)"""
    model, columns = of_table(names=("age", EVIL_FEATURE, "plan", "member"), levels=("basic", EVIL, "1"))
    labels = np.where(model.predict(columns) == "yes", "yes", "no")
    return write(model, tmp_path_factory.mktemp("pages") / "edited.html", columns, labels), model, columns


@pytest.mark.parametrize("size", SIZES)
def test_edited_values_are_predicted_in_the_page_as_the_model_predicts_them(size, visit, edited_page):
    path, model, columns = edited_page
    with visit(path, size) as tab:
        assert tab.evaluate("document.documentElement.dataset.whatif") == "true"  # all samples reach their leaves
        for place in (0, 5, 11):
            tab.click(f"#gallery [data-sample] >> nth={place}")
            row = int(text_of(tab, "#panel h3").split()[1])
            assert "as before" in text_of(tab, ".what-if .answer")
            changed = {name: values[row] for name, values in columns.items()}
            for name, value in (("age", 71.5), ("member", True), ("plan", EVIL), ("age", None), ("plan", None)):
                changed[name] = value
                field = tab.locator(f".what-if [aria-label='{name}']").last
                if name == "age":
                    field.fill("" if value is None else str(value))
                else:
                    field.select_option(label="missing" if value is None else str(value).lower())
                leaf = int(model.leaf_indices({key: [one] for key, one in changed.items()})[0])
                assert f"leaf {leaf}" in text_of(tab, ".what-if .answer")
                lit = tab.locator(".node.on-path").evaluate_all("nodes => nodes.map(n => Number(n.dataset.node))")
                assert sorted(lit) == sorted(model.tree_.structure.nodes_to(leaf))
            tab.click(".what-if button:text('Reset')")
            assert "as before" in text_of(tab, ".what-if .answer")


def test_linear_leaves_predict_edited_values_as_the_model_does(visit, tmp_path):
    model, X, y = fitted(n_classes=3, leaf_model="linear", max_depth=1)
    with visit(write(model, tmp_path / "page.html", X, y, class_names=["north", "east", "south"])) as tab:
        assert tab.evaluate("document.documentElement.dataset.whatif") == "true"
        tab.click("#gallery [data-sample] >> nth=0")
        row = X[int(text_of(tab, "#panel h3").split()[1])].copy()
        seen = set()
        for value in (-40.0, -4.0, 0.0, 4.0, 40.0):
            row[1] = value
            tab.locator(".what-if [aria-label='x1']").last.fill(str(value))
            answer, (best,) = " ".join(text_of(tab, ".what-if .answer").split()), model.predict(row[None])
            assert f"predicted {['north', 'east', 'south'][best]}" in answer
            assert f"leaf {int(model.leaf_indices(row[None])[0])}" in answer
            seen.add(int(best))
        assert len(seen) > 1


def test_a_slider_changes_the_value_and_its_field(visit, edited_page):
    path, model, columns = edited_page
    with visit(path) as tab:
        tab.click("#gallery [data-sample] >> nth=0")
        row = int(text_of(tab, "#panel h3").split()[1])
        slider = tab.locator(".what-if [aria-label='age'][type='range']")
        slider.focus()
        tab.keyboard.press("Home")
        lowest = min(age for age in columns["age"] if age is not None)
        assert tab.locator(".what-if [aria-label='age'][type='number']").input_value() == f"{lowest:g}"
        changed = {name: [values[row]] for name, values in columns.items()} | {"age": [lowest]}
        assert f"leaf {int(model.leaf_indices(changed)[0])}" in text_of(tab, ".what-if .answer")
        tab.locator(".what-if [aria-label='member']").focus()
        tab.keyboard.press("Escape")


def test_a_value_that_is_no_number_shows_an_error(visit, table_page):
    with visit(table_page) as tab:
        tab.click("#gallery [data-sample] >> nth=0")
        tab.locator(".what-if input[type='number']").first.fill("")  # filled in as in predict
        assert "predicted" in text_of(tab, ".what-if .answer")
        tab.locator(".what-if input[type='number']").first.fill("1e39")
        assert "must hold a finite number" in text_of(tab, ".what-if .answer")


@pytest.fixture(scope="module")
def houses_page(tmp_path_factory):
    """A regression on a table with a category. (page, model, frame, y)"""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"area": rng.integers(40, 200, 300), "town": rng.choice(["north", EVIL, "south"], 300)})
    y = 2.0 * frame.area + 100 * (frame.town == "north") + rng.normal(size=300)
    model = plain_regressor(max_depth=2).fit(frame, y)
    return write(model, tmp_path_factory.mktemp("pages") / "houses.html", frame, y, target="price"), model, frame, y


@pytest.mark.parametrize("size", SIZES)
def test_the_page_of_a_regression_has_errors_means_and_what_if(size, visit, houses_page):
    path, model, frame, y = houses_page
    with visit(path, size) as tab:
        assert f"{model.score(frame, y):.3f}" in text_of(tab, ".cards")
        assert tab.locator("#quality circle.dot").count() == 300
        bins = tab.locator("#quality rect.bin title").evaluate_all("titles => titles.map(t => parseInt(t.textContent))")
        assert sum(bins) == 300
        assert tab.locator("#confusion, #legend button").evaluate_all("all => all.filter(e => e.offsetParent)") == []
        assert tab.locator("#pruning tbody tr").count() == len(model.cost_complexity_pruning_path().n_leaves)
        assert f"{model.score(frame, y):.3f}" in text_of(tab, "#pruning tbody tr >> nth=0")
        n_splits = model.tree_.structure.n_splits
        for node in (0, n_splits):
            press(tab, node)
            mean = view_model(model, "a test").node_moments(node)[0][1]
            assert f"{mean:.3g}" in text_of(tab, "#panel")
        assert tab.evaluate("document.documentElement.dataset.whatif") == "true"
        tab.click("#gallery [data-sample] >> nth=0")
        row = int(text_of(tab, "#panel h3").split()[1])
        assert f"{model.predict(frame[row : row + 1])[0]:.6g}" in text_of(tab, ".answers")
        changed = frame[row : row + 1].assign(area=41, town="north")
        tab.locator(".what-if [aria-label='area']").last.fill("41")
        tab.locator(".what-if [aria-label='town']").last.select_option(label="north")
        answer = text_of(tab, ".what-if .answer")
        assert f"{model.predict(changed)[0]:.6g}" in answer
        assert f"leaf {int(model.leaf_indices(changed)[0])}" in answer


def test_pages_of_regressions_of_every_kind_react_to_clicks(visit, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)).astype(np.float32)
    y = np.stack([X[:, 0] * 3, X[:, 1]], axis=1)
    two = plain_regressor(max_depth=2).fit(X, y)
    linear = plain_regressor(max_depth=1, leaf_model="linear").fit(X, y[:, 0])
    images = plain_regressor(max_depth=2, image_shape=(2, 2)).fit(X, y[:, 0])
    leaf = plain_regressor(max_depth=0).fit(X, y[:, 0])
    for model, truth in ((two, y), (linear, y[:, 0]), (images, y[:, 0]), (leaf, y[:, 0])):
        pages = [write(model, tmp_path / "full.html", X, truth), write(model, tmp_path / "bare.html")]
        for path in pages:
            with visit(path) as tab:
                press(tab, 0)
                assert text_of(tab, "#panel h3") in ("Split 0", "Leaf 0")
                if path is pages[0]:
                    tab.click("#gallery [data-sample] >> nth=0")
                    assert text_of(tab, "#panel h3").startswith("Row")


def test_a_vector_file_zooms_moves_and_fits_again(chromium, tmp_path):
    from crisptree.plots import plot_tree
    from crisptree.plots.style import save_figure

    save_figure(plot_tree(random_model(depth=3)), tmp_path / "tree.svg", dpi=100)
    tab = chromium.new_page(viewport=SIZES["desktop"])
    tab.goto((tmp_path / "tree.svg").as_uri())

    def box():
        return [float(side) for side in tab.evaluate("document.documentElement.getAttribute('viewBox')").split()]

    whole = box()
    tab.mouse.move(500, 300)
    tab.mouse.wheel(0, -300)
    tab.wait_for_function(
        "before => document.documentElement.getAttribute('viewBox').split(' ')[2] < before", arg=whole[2]
    )
    zoomed = box()
    tab.mouse.down()
    tab.mouse.move(400, 350, steps=3)
    tab.mouse.up()
    assert box()[0] > zoomed[0]
    assert box()[2] == zoomed[2]
    tab.mouse.dblclick(500, 300)
    assert box() == whole
    tab.close()
