"""Goal: check_versions.py finds each kind of violation, and only those.

Method: a small tree that follows all rules passes; then one violation at a time is planted in a
copy of it, and exactly that rule has to be reported at exactly that file.
"""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_versions  # noqa: E402

PROJECT = "cmake_minimum_required(VERSION 3.25)\nproject(nacre VERSION 1.10.0 LANGUAGES CXX\n"
ENTRIES = "## [1.10.0] - 2026-12-31\n\n- More.\n\n## [1.9.0] - 2026-01-31\n"
CLEAN_TREE = {
    "CMakeLists.txt": PROJECT,
    "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n### Added\n\n" + ENTRIES,
    "pyproject.toml": 'dynamic = ["version"]\nrequires = "other>=1.10.0.1"\n',
    "include/nacre/c.h": '/// Such as "1.9.9".\n',
}
# (what is planted, file, text, rule that must be reported)
PLANTED = [
    ("no version", "CMakeLists.txt", "project(nacre)\n", "version"),
    ("the changelog lags", "CMakeLists.txt", PROJECT.replace("1.10", "1.11"), "version"),
    ("an empty changelog", "CHANGELOG.md", "# Changelog\n", "version"),
    ("a release that is not the newest", "CHANGELOG.md", "## [1.9.0] - 2026-01-31\n", "version"),
    ("a version without a day", "CHANGELOG.md", ENTRIES + "## [1.8.0]\n", "changelog"),
    ("no such day", "CHANGELOG.md", ENTRIES.replace("12-31", "12-32"), "version"),
    ("a wrong order", "CHANGELOG.md", ENTRIES + "## [1.9.1] - 2026-02-28\n", "changelog"),
    ("what is to come below", "CHANGELOG.md", ENTRIES + "## [Unreleased]\n", "changelog"),
    ("a second place", "pyproject.toml", 'version = "1.10.0"\n', "version"),
    ("a second place in C", "include/nacre/c.h", '/// "1.10.0"\n', "version"),
]


class CheckVersionsTest(unittest.TestCase):
    def check(self, change: dict[str, str]) -> list[check_versions.Violation]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**CLEAN_TREE, **change}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            return check_versions.check_tree(root)

    def test_clean_tree_passes(self) -> None:
        self.assertEqual(self.check({}), [])

    def test_planted_violations_are_found(self) -> None:
        for what, name, text, rule in PLANTED:
            with self.subTest(what):
                found = self.check({name: text})
                self.assertIn(rule, {violation.rule for violation in found}, found)
                for violation in found:
                    self.assertIn(violation.path, (name, "CHANGELOG.md"))


if __name__ == "__main__":
    unittest.main()
