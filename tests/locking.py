"""The lock: every distribution that building and testing need, with its version and the hash of its file.

``make lock`` writes ``requirements-lock.txt`` anew, from ``pyproject.toml`` and ``constraints.txt``, for the Python and
the system that it runs on. Hashes say which file was tested; where it comes from is left to pip's own settings.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-lock.txt"
TOOLS = ("cmake", "ninja")
"""What the build takes from the system or, where it is not there, from here."""

HEAD = """\
# Every distribution that building and testing crisptree need, written by `make lock` on {system}.
# Install with: pip install --require-hashes --no-deps -r requirements-lock.txt
# torch is the wheel of the CPU; whoever installs another build of that version adds its hash.
"""


def normalised(name: str) -> str:
    """Names that differ in case, dots and dashes are one."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements() -> list[str]:
    """What the package, all its extras for users and developers, and its build ask for."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = said["project"]
    wanted, extras, seen = list(project["dependencies"]), ["all", "dev"], set[str]()
    while extras:
        extra = extras.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in project["optional-dependencies"][extra]:
            own = re.fullmatch(r"crisptree\[(.*)\]", requirement)
            if own:
                extras += own[1].split(",")
            else:
                wanted.append(requirement)
    return sorted({*wanted, *said["build-system"]["requires"], *TOOLS})


def locked() -> dict[str, tuple[str, str]]:
    """Version and hash by name, as the lock has them."""
    entry = re.compile(r"^([\w.-]+)==(\S+) --hash=sha256:([0-9a-f]{64})$")
    lines = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found = [entry.match(line) for line in lines]
    assert all(found), "every line of the lock must be a name, a version and a hash"
    return {match[1]: (match[2], match[3]) for match in found if match}


def main() -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    command += ["--constraint", str(ROOT / "constraints.txt"), *requirements()]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    entries = {}
    for item in report["install"]:
        version = item["metadata"]["version"].partition("+")[0]  # which build of it says the hash
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        entries[normalised(item["metadata"]["name"])] = f"{version} --hash=sha256:{digest}"
    system = f"CPython {platform.python_version()}, {platform.system()} {platform.machine()}"
    lines = [f"{name}=={entry}" for name, entry in sorted(entries.items())]
    LOCK.write_text(HEAD.format(system=system) + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
