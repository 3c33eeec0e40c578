import re
from pathlib import Path

import pytest

from crisptree import export
from crisptree.export import ExportError
from crisptree.export.support import ABILITIES, TARGETS, support_table
from tests.export.models import numbers, thresholds

PAGE = Path(__file__).parents[2] / "docs" / "export" / "index.md"


def test_the_page_of_exports_has_the_table_that_the_code_has():
    (table,) = re.findall(r"<!-- support table.*?-->\n(.*?)<!-- end", PAGE.read_text(encoding="utf-8"), flags=re.S)
    assert table.strip() == support_table()


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_every_refusal_says_what_to_do(target):
    for word, reason in target.refuses.items():
        assert word in ABILITIES
        assert re.search(r"Train|Export|Keep|Use|keep", reason), (target.name, word)


def test_an_unknown_target_or_option_is_answered_with_the_known_ones():
    model, _ = numbers(n=60, max_depth=1)
    with pytest.raises(ExportError, match=r"must go to one of .*sklearn.*; got 'cobol'"):
        export.write(model, "cobol")
    with pytest.raises(ExportError, match="takes the options `form`; got `speed`"):
        export.write(thresholds()[0], "sklearn", speed=1)
