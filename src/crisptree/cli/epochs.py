"""Epochs on the progress bar."""

from __future__ import annotations

from collections.abc import Callable

from crisptree.cli.speaking import Bar
from crisptree.estimators.progress import fraction_done
from crisptree.learning.history import EpochRecord

PHASES = {"grow": "growing", "finetune": "finetuning"}


def epoch_bar(bar: Bar) -> Callable[[EpochRecord], None]:
    """A callback that shows how far a fit is."""

    def show(record: EpochRecord) -> None:
        detail = f"(level {record.level}) " if record.phase == "grow" else ""
        detail += f"loss {record.loss:.4f}"
        if record.validation_score is not None:
            detail += f", validation {record.validation_score:.4f}"
        bar.update(PHASES.get(record.phase, record.phase), fraction_done(record), detail)

    return show
