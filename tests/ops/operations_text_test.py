"""Goal: the commands that docs/operations.md, README.md, docs/security.md and docs/sharding.md show
are right: each does what the page says, ends as an operator expects, and prints what is shown below
it, numbers apart.

Method: all blocks of commands are taken from a page and run in its order, section by section,
against a real pool of this machine, with addresses, paths and sizes put in by a table. What cannot
be run here is in a table with the reason. A command that is neither run nor excused fails, and so
does an entry of a table that fits no command.

usage: operations_text_test.py FOLDER_OF_BINARIES [TEST...]

Exit code 77: a program that some sections need is not installed, and these were skipped.
"""

import pathlib
import signal
import sys
import tempfile
import unittest

import operations_page
import other_pages
from page_commands import commands_of, difference
from page_run import PageRun

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path()  # Set by main.
SKIPPED = 77
PAGES = (operations_page.PAGE, other_pages.README, other_pages.SECURITY, other_pages.SHARDING)


class PageCommandsTest(unittest.TestCase):
    """That nothing of a page escapes, and that what differs is seen."""

    def commands(self, text: str):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "page.md")
            path.write_text(text)
            return commands_of(path)

    def test_commands_have_their_section_and_output(self):
        found = self.commands(
            "# Page\n## 2. Two\n#### More\n```console\n$ one \\\n    two\nprinted\n\nmore\n"
            "# three\n```\n### 2.1 Below\n1. Step\n\n   ```sh\n   # why\n   four &\n   ```\n"
            "```text\nlog\n```\n")
        self.assertEqual([(each.section, each.line, each.text, each.output) for each in found],
                         [("2", 5, "one \\\n    two", ("printed", "", "more")),
                          ("2", 10, "three", ()), ("2.1", 17, "four &", ())])

    def test_blocks_that_do_not_say_what_they_are_are_refused(self):
        for text in ("text\n\n    command\n", "```\ncommand\n```\n", "```bash\ncommand\n```\n",
                     "```text\n$ command\n```\n", "```console\noutput\n$ command\n```\n"):
            with self.assertRaises(ValueError, msg=text):
                self.commands(text)

    def test_numbers_may_differ_and_words_may_not(self):
        shown = ["node  memory", "0     12.0 MiB 3/17", "1     1.5 GiB 4/18", "id 0a51c2f7 ..."]
        self.assertEqual(difference(shown, [
            "node memory", "0 9 B 100/2", "id 9be01d44 of rack1"]), "")
        for printed in (["node  bytes", *shown[1:]], shown[:2], [*shown, "more"],
                        ["node  memory", "0     12.0 MiB -", shown[3]]):
            self.assertNotEqual(difference(shown, printed), "", printed)


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
    # So that all that was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    program = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2, exit=False)
    if not program.result.wasSuccessful():
        return 1
    return SKIPPED if program.result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
