"""Write the golden records anew: ``python -m tests.golden.record [PART …]``, by default all parts.

Run it from the repository's root, on an otherwise unchanged tree, when a change of behaviour is meant, and read the
difference: scores must stay, and bits change only where they must. The result is the same for every run on one kind of
machine. Stored model files (``files/*.crisp``) and the predictions beside them are written only where they are missing,
because they stand for the files that users have; delete one to have it made again. Fits on real data need
``CRISPTREE_DATA`` (docs/guide/reproducing.md); without it their records stay as they are.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.golden import test_cli, test_exports, test_fits, test_model_files, test_process_groups


def write_document(module: Any) -> None:
    """Write what ``make_record`` of a test module returns to its ``RECORD``."""
    text = json.dumps(module.make_record(), indent=1, ensure_ascii=False)
    module.RECORD.write_text(text + "\n", encoding="utf-8")


PARTS: dict[str, Callable[[], None]] = {
    "files": test_model_files.write_record,
    "cli": partial(write_document, test_cli),
    "exports": partial(write_document, test_exports),
    "fits": partial(write_document, test_fits),
    "process_groups": partial(write_document, test_process_groups),
}


def main(parts: list[str]) -> None:
    """Write some parts, or all."""
    if unknown := [part for part in parts if part not in PARTS]:
        sys.exit(f"the golden records must be some of {', '.join(PARTS)}; got {unknown[0]!r}.")
    warnings.simplefilter("error")
    for part in parts or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main(sys.argv[1:])
