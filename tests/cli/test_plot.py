"""plot and report: what is made to be looked at."""

import json

import pyarrow as pa
import pytest

from tests.cli.running import QUICK, done, run
from tests.encoding.writers import write
from tests.report.conftest import data_of, unpacked
from tests.toys import clouds


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_tree_is_drawn_in_every_format(shop, tmp_path, ending, magic):
    done("plot", shop.model, "-o", tmp_path / f"a tree.{ending}", "--max-depth", "1")
    assert (tmp_path / f"a tree.{ending}").read_bytes().startswith(magic)


def test_weights_confusion_and_regions_are_drawn(shop, tmp_path):
    done("plot", shop.model, "--kind", "weights", "-o", tmp_path / "w.png", "--dpi", "40")
    done("plot", shop.model, "--kind", "confusion", "--data", shop.csv, "-o", tmp_path / "c.png", "--dpi", "40")
    X, y = clouds(60, n_features=2)
    plane = write(pa.table({"a $x_1$": X[:, 0], "b": X[:, 1], "y": y}), tmp_path / "t.csv")
    done("fit", plane, "-t", "y", "-o", tmp_path / "m.crisp", *QUICK)
    done("plot", tmp_path / "m.crisp", "--kind", "regions", "--data", plane, "-o", tmp_path / "r.png", "--dpi", "40")
    for name in "wcr":
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    answer = run("plot", shop.model, "--kind", "regions", "--data", shop.csv, "-o", tmp_path / "no.png")
    assert answer.code == 1
    assert answer.notes.startswith("error: ")


def test_wrong_use_of_plot_is_said(shop, tmp_path):
    for arguments, said in (
        (("-o", tmp_path / "t.docx"), "-o must end in .svg or .png or .pdf"),
        (
            ("-o", tmp_path / "t.png", "--kind", "confusion"),
            "--kind confusion and regions and residuals go with --data, and no others; got confusion",
        ),
        (("-o", tmp_path / "t.png", "--kind", "weights", "--max-depth", "2"), "--max-depth is for --kind tree"),
    ):
        answer = run("plot", shop.model, *arguments)
        assert answer.code == 2
        assert said in " ".join(answer.said.replace("│", " ").split())


def test_the_report_is_one_page_about_the_model_and_the_table(shop, tmp_path):
    answer = done("report", shop.model, shop.csv, "-o", tmp_path / "a report.html", "--json")
    assert json.loads(answer.raw)["rows"] == 160
    page = (tmp_path / "a report.html").read_text(encoding="utf-8")
    assert "color=rot" in page
    assert "Decision tree for buys" in page
    samples = data_of(page)["samples"]  # rows of a file are counted from 1, as in all messages
    assert samples["ids"] == [str(row + 1) for row in unpacked(samples["row"])]
    assert [path.name for path in tmp_path.iterdir()] == ["a report.html"]
    assert run("report", shop.model, shop.csv, "-o", tmp_path / "r.pdf").code == 2
