"""The small version of the paper's experiments, from data to page: a minute or two."""

import pytest

from experiments import report, run

pytestmark = pytest.mark.slow


def test_the_quick_version_finishes_every_cell_and_reports_them(tmp_path):
    results = tmp_path / "quick"
    assert run.main(["digits", "--device", "cpu", "--results", str(results), "--trees", str(tmp_path / "trees")]) == 0
    assert report.main(["digits", "--results", str(results)]) == 0
    page = (tmp_path / "quick.md").read_text()
    assert "55 of 55 cells are finished" in page
    assert (tmp_path / "quick.png").is_file()
