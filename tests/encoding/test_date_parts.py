"""Parts of dates, times of day and time differences, in every notation and container that has them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from crisptree import CrispTreeClassifier, CrispTreeWarning, TableEncoder, explain, export, load
from crisptree.encoding.text_formats import parse_moment
from crisptree.exceptions import TableError
from tests.cli.running import done, run

PARTS = ["month", "day", "weekday", "hour"]


@pytest.fixture(scope="module")
def moments():
    return pd.date_range("2022-01-03", periods=300, freq="17h")


FORMS = {
    "pandas": lambda moments: pd.DataFrame({"at": moments}),
    "with a time zone": lambda moments: pd.DataFrame({"at": moments.tz_localize("Asia/Tokyo")}),
    "objects": lambda moments: pd.DataFrame({"at": moments.to_pydatetime()}, dtype=object),
    "arrow": lambda moments: pa.table({"at": moments}),
    "numpy": lambda moments: {"at": moments.to_numpy().astype("datetime64[s]")},
    "ISO text": lambda moments: {"at": moments.strftime("%Y-%m-%d %H:%M:%S").tolist()},
    "slashes": lambda moments: {"at": moments.strftime("%Y/%m/%d %H:%M").tolist()},
    "points": lambda moments: {"at": moments.strftime("%d.%m.%Y %H:%M").tolist()},
    "months first": lambda moments: {"at": moments.strftime("%m/%d/%y %I:%M %p").tolist()},
    "days first": lambda moments: {"at": moments.strftime("%d/%m/%Y %H:%M").tolist()},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_notation_has_the_same_parts(form, moments):
    encoder = TableEncoder(dates=["at"]).fit(FORMS[form](moments))
    assert encoder.get_feature_names_out().tolist() == [f"at {part}" for part in PARTS]  # the year does not change
    expected = np.column_stack([moments.month, moments.day, moments.day_of_week + 1, moments.hour])
    assert np.array_equal(encoder.transform(FORMS[form](moments)), expected)


def test_times_of_day_are_hours_and_differences_are_days():
    table = {"clock": ["13:30", "06:15", "23:45"], "lasted": pd.to_timedelta([12, 36, 60], "h")}
    encoder = TableEncoder(dates=["clock", "lasted"]).fit(pd.DataFrame(table))
    assert encoder.get_feature_names_out().tolist() == ["clock hour", "lasted days"]
    assert encoder.transform(pd.DataFrame(table)).tolist() == [[13.5, 0.5], [6.25, 1.5], [23.75, 2.5]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2024-02-30", None),
        ("tomorrow", None),
        ("31.12.68", ("date", 36159 * 86400.0)),
        ("31.12.69", ("date", -86400.0)),
        ("12:00 am", ("time", 0.0)),
        ("-1 days +06:00:00", ("difference", -64800.0)),
        ("1970-01-01T01:00:00+01:00", ("date", 3600.0)),
    ],
)
def test_moments(text, found):
    assert parse_moment(text, day_first=True) == found


def test_a_tree_speaks_of_the_parts_and_its_file_keeps_them(moments, tmp_path):
    table = pd.DataFrame({"joined": moments.strftime("%d/%m/%Y"), "x": np.arange(300) % 7})
    y = np.where(moments.month > 6, "late", "early")
    model = CrispTreeClassifier.readable(categorical_features=TableEncoder(dates=["joined"]), random_state=0)
    model.fit(table, y)
    assert "if joined month ≤ 6: early with 100%" in export.sentences(model)
    assert model.feature_importances_.tolist() == [1.0, 0.0]  # of the columns of the table
    model.save(tmp_path / "m.crisp")
    again = load(tmp_path / "m.crisp")
    assert np.array_equal(again.predict(table), y)
    ambiguous = pd.DataFrame({"joined": ["03/12/2022"], "x": [1]})  # read as in training, the day first
    assert again.predict(ambiguous).tolist() == ["late"]
    change = explain.find_counterfactual(again, table.iloc[0])
    assert [name for name, _, _ in change.columns] == ["joined month"]


def test_a_missing_date_is_filled_and_indicated(moments):
    table = pd.DataFrame({"at": moments})
    table.loc[3, "at"] = pd.NaT
    encoder = TableEncoder(dates=["at"]).fit(table)
    names = encoder.get_feature_names_out().tolist()
    row = dict(zip(names, encoder.transform(table)[3].tolist(), strict=True))
    assert row["at month is missing"] == 1
    assert row["at month"] == pytest.approx(table["at"].dt.month.mean())
    complete = TableEncoder(dates=["at"]).fit({"at": moments})
    with pytest.warns(CrispTreeWarning, match="missing value"):
        complete.transform(table)


def test_dates_that_cannot_be_read_are_refused(moments):
    with pytest.raises(TableError, match=r"day and month can be told apart.*Write the year first: 2024-04-03"):
        TableEncoder(dates=["at"]).fit({"at": ["1/2/2024", "3/4/2024"] * 20})
    with pytest.raises(TableError, match=r"must hold dates such as .*row 1 has 'soon'.*missing=\['soon'\]"):
        TableEncoder(dates=["at"]).fit({"at": ["2024-01-02", "soon"] * 20})
    encoder = TableEncoder(dates=["at"], missing=["soon"]).fit({"at": ["2024-01-02", "soon", "2024-02-03"]})
    with pytest.raises(TableError, match="column 'at' must hold dates or times, as in training; row 0 has 'later'"):
        encoder.transform({"at": ["later"]})
    with pytest.raises(TableError, match="`dates` must name other columns"):
        TableEncoder(dates=["at"], drop=["at"]).fit({"at": moments, "x": np.arange(300)})


def test_batches_find_the_order_of_day_and_month_together(moments):
    encoder, texts = TableEncoder(dates=["at"]), moments.strftime("%d/%m/%Y").tolist()
    for start in range(0, 300, 5):
        encoder.partial_fit({"at": texts[start : start + 5]})
    assert np.array_equal(encoder.transform({"at": texts})[:, 0], moments.month)


def test_the_command_line_takes_parts_of_dates(moments, tmp_path):
    table = pd.DataFrame({"at": moments, "x": np.arange(300) % 7, "y": np.where(moments.month > 6, "late", "early")})
    table.to_csv(tmp_path / "t.csv", index=False)
    command = ["fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.crisp"]
    assert "by --dates at for example, or leave it out with --drop at." in run(*command).text
    assert "if at month ≤ 6: early" in done(*command, "--dates", "at", "--readable").text
    done("predict", tmp_path / "m.crisp", tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    assert (pd.read_csv(tmp_path / "p.csv")["prediction"] == table["y"]).all()
    for ending in ("js", "sql", "json"):
        done("export", tmp_path / "m.crisp", "-o", tmp_path / f"m.{ending}", "--check", tmp_path / "t.csv")
