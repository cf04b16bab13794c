"""Goal: all programs tell their version and commit, and a build finds the commit by itself.

Method: runs each program with --version; then runs cmake/NacreFindCommit.cmake on folders that git
knows in several ways, and on some that it does not.

usage: program_versions_test.py SOURCE_DIR BIN_DIR PROGRAM...
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = BIN = pathlib.Path()  # Set by main, like PROGRAMS.
PROGRAMS: list[str] = []
SCRIPT = "cmake/NacreFindCommit.cmake"
GIT = ("git", "-c", "user.name=Nacre", "-c", "user.email=nacre@localhost",
       "-c", "commit.gpgsign=false")


def output_of(*command: object, **arguments) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, capture_output=True, text=True, **arguments).stdout


def project_version() -> str:
    text = (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(nacre VERSION ([\d.]+)", text).group(1)


class ProgramsTest(unittest.TestCase):
    def test_each_answers_one_line(self) -> None:
        version = re.escape(project_version())
        for program in PROGRAMS:
            with self.subTest(program):
                line = output_of(BIN / program, "--version")
                self.assertRegex(line, rf"\A{program} {version} "
                                 r"\(commit (unknown|[0-9a-f]{10,}(-dirty)?), \w[\w, ]*\)\n\Z")


class FindCommitTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "source"
        (self.root / "cmake").mkdir(parents=True)
        for name in (SCRIPT, "cmake/build_version.cc.in", ".gitattributes"):
            shutil.copy(SOURCE / name, self.root / name)
        # As git has it, not as an archive does, in which this test may run.
        (self.root / "cmake/archive_commit.txt").write_text("$Format:" "%H$\n")
        self.written = pathlib.Path(folder.name) / "build_version.cc"

    def commit(self) -> str:
        """Has the source written; the commit that it tells."""
        output_of("cmake", f"-DSOURCE_DIR={self.root}", f"-DOUTPUT={self.written}",
                  "-DNACRE_BUILD_KIND=release", "-P", self.root / SCRIPT)
        return re.search(r'"commit (\S+), release"', self.written.read_text()).group(1)

    def git(self, *words: str) -> str:
        return output_of(*GIT, "-C", self.root, *words).strip()

    def make_repository(self) -> str:
        if shutil.which("git") is None:
            self.skipTest("there is no git")
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message=All")
        return self.git("rev-parse", "HEAD")

    def test_a_commit_with_and_without_changes(self) -> None:
        commit = self.make_repository()
        self.assertEqual(self.commit(), commit[:10])
        self.git("tag", "--annotate", "--message=One", "v1.0.0")
        self.assertEqual(self.commit(), commit[:10])
        with (self.root / "cmake/build_version.cc.in").open("a") as source:
            source.write("// A change.\n")
        self.assertEqual(self.commit(), f"{commit[:10]}-dirty")

    def test_the_source_is_written_only_if_it_changes(self) -> None:
        self.make_repository()
        self.commit()
        os.utime(self.written, (1, 1))
        self.commit()
        self.assertEqual(self.written.stat().st_mtime, 1)
        self.git("commit", "--quiet", "--allow-empty", "--message=More")
        self.commit()
        self.assertNotEqual(self.written.stat().st_mtime, 1)

    def test_an_archive_made_by_git(self) -> None:
        commit = self.make_repository()
        archive = self.root.parent / "archive.tar"
        self.git("archive", f"--output={archive}", "HEAD")
        shutil.rmtree(self.root)
        self.root.mkdir()
        output_of("tar", "-xf", archive, "-C", self.root)
        self.assertEqual(self.commit(), commit[:10])

    def test_a_copy_without_git(self) -> None:
        self.assertEqual(self.commit(), "unknown")

    def test_a_copy_within_another_repository(self) -> None:
        self.make_repository()
        copy = self.root / "third_party"
        shutil.copytree(self.root, copy, ignore=shutil.ignore_patterns(".git", "third_party"))
        self.root = copy
        self.assertEqual(self.commit(), "unknown")


if __name__ == "__main__":
    SOURCE, BIN = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    PROGRAMS = sys.argv[3:]
    unittest.main(argv=sys.argv[:1])
