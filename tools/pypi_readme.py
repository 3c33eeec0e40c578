"""Metadata provider for scikit-build-core: README.md as package indexes show it, without the files beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

IMAGE = re.compile(r"!\[[^\]]*\]\((?!https?://)[^)]*\)\n+(?:\*[^*]+\*\n+)?")
"""A picture of the repository, with its caption."""

LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)([^)]*)\)")


def render(text: str, source: str | None, version: str) -> str:
    """Make links absolute at the release's tag of the repository ``source``; without one, keep their text alone."""
    link = r"\1" if source is None else rf"[\1]({source.rstrip('/')}/blob/v{version}/\2)"
    return LINK.sub(link, IMAGE.sub("", text))


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``readme`` field of the project's metadata; ``[project.urls] Source`` is where its links lead."""
    text = Path("README.md").read_text(encoding="utf-8")
    shown = render(text, project.get("urls", {}).get("Source"), project["version"])
    return {"readme": {"content-type": "text/markdown", "text": shown}}
