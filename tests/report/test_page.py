import base64
import hashlib
import re
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from crisptree.data.raw_rows import Scaling
from crisptree.inference.finalization import finalize
from crisptree.report import write
from crisptree.report.contents import SCRIPTS
from crisptree.structure import TreeStructure
from tests.report.conftest import EVIL, EVIL_FEATURE, KINDS, fitted
from tests.toys import clouds, plain_tree, random_tree

WIDE = {"4,096 features", "64 × 64 images"}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in WIDE else []) for kind in KINDS]
)
def test_trees_of_every_kind_get_a_page_with_and_without_rows(kind, page):
    model, X, y = fitted(**KINDS[kind])
    for rows in ((X, y), (X, None), (None, None)):
        text, data = page(model, *rows)
        assert text.startswith("<!doctype html>")
        assert data["summary"]["leaves"] == model.get_n_leaves()


def test_names_from_data_are_only_ever_text(page):
    model, X, y = fitted(n_features=2, n_classes=2)
    text, data = page(model, X, y, class_names=[EVIL, "$b_c$"], feature_names=[EVIL_FEATURE, "x"], title=EVIL)
    assert data["classes"] == [EVIL, "$b_c$"]
    assert data["features"][0] == EVIL_FEATURE
    assert EVIL not in text
    assert EVIL_FEATURE not in text
    assert "<title>&lt;/script&gt;" in text
    assert text.count("<script") == text.count("</script") == 2  # the data and the page's own


def test_the_page_names_no_other_place(page):
    text, _ = page(*fitted())
    addresses = set(re.findall(r"[a-z]+://[^\s\"'`)]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a language, which nobody fetches
    assert not re.search(r"<(link|img|iframe|object|embed|base)\b|@import|url\(|src=", text)


def test_the_policy_allows_these_very_scripts_and_styles_and_no_network(page):
    text, _ = page(*fitted())
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    for tag, directive in (('script type="module"', "script-src"), ("style", "style-src")):
        name = tag.split()[0]
        (content,) = re.findall(f"<{tag}>(.*?)</{name}>", text, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy


def test_scripts_never_turn_text_into_elements():
    for name in SCRIPTS:
        script = files("crisptree.report").joinpath("scripts", f"{name}.js").read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", script)


def test_every_script_is_part_of_the_page_and_short_enough_to_read():
    folder = files("crisptree.report").joinpath("scripts")
    assert sorted(f"{name}.js" for name in SCRIPTS) == sorted(script.name for script in folder.iterdir())
    for script in folder.iterdir():
        lines = script.read_text().splitlines()
        assert len(lines) <= 320
        assert max(map(len, lines)) <= 120


def test_notes_explain_missing_sections(page):
    model, X, y = fitted()
    everything, _ = page(model, X, y)
    assert "Not shown" not in everything.split("<script")[0]
    without_rows = page(model)[0].split("<script")[0]
    assert "no rows were given" in without_rows
    without_classes = page(model, X)[0].split("<script")[0]
    assert "No confusion matrix" in without_classes
    modules = page(*fitted(**KINDS["module"]))[0].split("<script")[0]
    assert "no weight for each feature" in modules
    single = page(*fitted(max_depth=0))[0].split("<script")[0]
    assert "a single leaf" in single
    all_right = page(model, X, model.predict(X))[0].split("<script")[0]
    assert "None of the rows is misclassified" in all_right
    none_kept = page(model, X, y, max_samples=0)[0].split("<script")[0]
    assert "max_samples=0" in none_kept


def test_frames_give_their_names(page):
    X, y = clouds(80, n_features=3)
    frame = pd.DataFrame(X, columns=["height", "width", "age"])
    model = plain_tree(max_depth=2, epochs=2, finetune_epochs=1, random_state=0).fit(frame, y)
    assert page(model, frame, y)[1]["features"] == ["height", "width", "age"]


def test_images_keep_their_shape(page):
    model, X, y = fitted(image_shape=(2, 3))
    assert page(model, X.reshape(-1, 2, 3), y)[1] == page(model, X, y)[1]


def test_the_same_report_is_written_twice_alike(page):
    model, X, y = fitted()
    assert page(model, X, y)[0] == page(model, X, y)[0]


def test_write_returns_the_path_and_needs_the_folder(tmp_path):
    model, X, y = fitted(max_depth=1)
    assert write(model, str(tmp_path / "r.html"), X, y) == tmp_path / "r.html"
    with pytest.raises(FileNotFoundError, match="Make it first"):
        write(model, tmp_path / "nowhere" / "r.html")


def test_a_missing_jinja_is_explained(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"crisptree\[report\]"):
        write(fitted(max_depth=0)[0], tmp_path / "r.html")


def test_a_report_without_rows_needs_neither_torch_nor_matplotlib(tmp_path):
    model = fitted(max_depth=1)[0]
    model.save(tmp_path / "x.crisp")
    code = (
        "import sys, crisptree, crisptree.report as r; "
        f"r.write(crisptree.load({str(tmp_path / 'x.crisp')!r}), {str(tmp_path / 'r.html')!r}); "
        "print([name in sys.modules for name in ('torch', 'matplotlib')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[False, False]"


@pytest.mark.slow
def test_a_tree_of_depth_8_on_images_of_784_pixels_stays_below_three_megabytes(page):
    """Noise is the worst case: it cannot be compressed."""
    X = np.random.default_rng(0).normal(size=(1000, 784)).astype(np.float32)
    y = np.arange(1000) % 10
    model = plain_tree(max_depth=0, image_shape=(28, 28)).fit(X, y)
    noise = random_tree(TreeStructure.balanced(8), 784, 10).crisp(Scaling.none(784), steepness=3.0)
    model.tree_ = finalize(noise, X, y, np.ones(1000), leaf_prior=0.0)
    text, data = page(model, X, y)
    assert data["samples"]["count"] == 800
    assert data["weights"]["step"] == data["samples"]["step"] == 1  # nothing was shrunk
    assert len(text.encode()) < 3_000_000
