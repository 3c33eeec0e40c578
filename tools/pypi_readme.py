"""Metadata provider for scikit-build-core: README.md as package indexes show it, without the files beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

IMAGE = re.compile(r"!\[[^\]]*\]\((?!https?://)[^)]*\)\n+(?:\*[^*]+\*\n+)?")
"""A picture of the repository, with its caption."""

LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)[^)]*\)")


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``readme`` field of the project's metadata."""
    text = Path("README.md").read_text(encoding="utf-8")
    return {"readme": {"content-type": "text/markdown", "text": LINK.sub(r"\1", IMAGE.sub("", text))}}
