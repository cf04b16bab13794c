"""The version is written in one place, project() of CMakeLists.txt; the changelog begins with it.

usage: check_versions.py ROOT

Prints one line for each violation, as `file:line: rule: message`, and answers 1 if there is any.
Entries of the changelog are "## [1.2.3] - 2026-01-31", the newest first, with one of "Unreleased"
above them if something is to be told of the next version.
"""

import datetime
import pathlib
import re
import sys
from typing import Iterator

from check_rules import Violation, run

PROJECT = re.compile(r"^project\(nacre VERSION (\d+\.\d+\.\d+)\b", re.MULTILINE)
ENTRY = re.compile(r"## \[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d{2}-\d{2})$")
UNRELEASED = "## [Unreleased]"
CHANGELOG = "CHANGELOG.md"
# Files that could say it a second time.
TELL_VERSION = ("pyproject.toml", "adapters/python/nacre/__init__.py", "include/nacre/version.h.in",
                "include/nacre/c.h", "packaging/CMakeLists.txt", "packaging/changelog.in")


def is_day(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def check_changelog(text: str, version: str) -> Iterator[Violation]:
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("## ") or (line == UNRELEASED and not entries):
            continue
        match = ENTRY.match(line)
        if match is None or not is_day(match.group(4)):
            yield Violation(CHANGELOG, number, "changelog", f"no version and day: {line}")
            continue
        entry = tuple(int(part) for part in match.groups()[:3])
        if entries and not entry < entries[-1]:
            yield Violation(CHANGELOG, number, "changelog", "not older than the entry above it")
        entries.append(entry)
    newest = ".".join(map(str, entries[0])) if entries else "none"
    if newest != version:
        yield Violation(CHANGELOG, 1, "version",
                        f"the newest entry is {newest}, CMakeLists.txt says {version}")


def check_tree(root: pathlib.Path) -> list[Violation]:
    project = PROJECT.search((root / "CMakeLists.txt").read_text(encoding="utf-8"))
    if project is None:
        return [Violation("CMakeLists.txt", 1, "version", "no project(nacre VERSION 1.2.3")]
    version = project.group(1)
    changelog = root / CHANGELOG
    if not changelog.is_file():
        return [Violation(CHANGELOG, 1, "changelog", "there is none")]
    violations = list(check_changelog(changelog.read_text(encoding="utf-8"), version))
    for name in TELL_VERSION:
        file = root / name
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        for match in re.finditer(rf"(?<![\d.]){re.escape(version)}(?![\d.])", text):
            violations.append(Violation(name, text.count("\n", 0, match.start()) + 1, "version",
                                        f"{version} is written in CMakeLists.txt alone"))
    return violations


if __name__ == "__main__":
    sys.exit(run(__doc__, check_tree))
