"""Goal: the commands that docs/operations.md shows are right: each does what the page says, ends as
an operator expects, and prints what is shown below it, numbers apart.

Method: all blocks of commands are taken from the page and run in its order, section by section,
against a real pool of this machine, with addresses, paths and sizes put in by a table. What cannot
be run here is in a table with the reason. A command that is neither run nor excused fails, and so
does an entry of a table that fits no command.

usage: operations_text_test.py FOLDER_OF_BINARIES [TEST...]

Exit code 77: a program that some sections need is not installed, and these were skipped.
"""

import pathlib
import sys
import tempfile
import unittest

import operations_page
from page_commands import commands_of
from page_run import PageRun

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path()  # Set by main.
SKIPPED = 77
PAGES = (operations_page.PAGE,)


class TextTest(unittest.TestCase):
    """Gets a test for each scene of each page, by add_tests."""

    def run_scene(self, page, scene) -> None:
        if scene.needs and (missing := scene.needs(BINARIES)):
            self.skipTest(missing)
        # In memory, where nodes may keep theirs.
        with tempfile.TemporaryDirectory(prefix="nacre_text_", dir="/dev/shm") as folder:
            run = PageRun(page, commands_of(ROOT / page.path), BINARIES, pathlib.Path(folder))
            try:
                failures = run.run_scene(scene)
            finally:
                run.close()
        if failures:
            self.fail("\n\n" + "\n\n".join(failures))

    def check_tables(self, page) -> None:
        failures = page.unused(commands_of(ROOT / page.path))
        if failures:
            self.fail("\n\n" + "\n".join(failures))


def add_tests() -> None:
    def add(name: str, function) -> None:
        setattr(TextTest, f"test_{name}", function)
    for page in PAGES:
        stem = pathlib.Path(page.path).stem.lower()
        add(f"{stem}_tables", lambda self, of=page: self.check_tables(of))
        for number, scene in enumerate(page.scenes, 1):
            add(f"{stem}_{number:02}_{scene.name}",
                lambda self, of=page, at=scene: self.run_scene(of, at))


def main() -> int:
    global BINARIES
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    BINARIES = pathlib.Path(sys.argv[1]).resolve()
    add_tests()
    program = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2, exit=False)
    if not program.result.wasSuccessful():
        return 1
    return SKIPPED if program.result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
