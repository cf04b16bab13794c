"""Goal: check_names.py finds each kind of name that is not there, and takes those that are.

Method: a small tree whose pages and comments name what it has passes; then one wrong name at a time
is planted in a copy of it, and exactly that rule has to be reported at exactly that file.
"""

import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import check_names  # noqa: E402

PAGE = """# Page

## 1. Parts

The log is in `db/wal/log.h`, `log.h` and [its header](../db/wal/log.h); the folder is `db/wal/`.
See [parts](#1-parts) and [another](other.md#the-rest-of-it), other.md, section 2, (section 1) and
other.md, "The rest". `Options::slab_size` is inherited; `LogWriter` has `LogWriter::Append()`.
Pass `--pool=URI`, or `NACRE_POOL`. Properties: `nacre.stats`, `nacre.space.user-bytes`,
`nacre.num-files-at-levelN`; `nacre.open(...)` is Python's. A metric: `nacre_reads_total`.
`slab_size` is a field, `micro_db` a program, `bench_name` what a program prints.
Foreign: `rocksdb/db.h`, `rocksdb::Options::wal_dir`, `cmake --preset release`, `build/release/bin`.
It does 5 ops/s beside `ops/bench/run.py`.
"""

CLEAN_TREE = {
    "docs/page.md": PAGE,
    "docs/design.md": "# D\n\n## 2. Parts\n\n    db/  with wal/\n\n## 3. Others\n",
    "docs/tour.md": "# Tour\n\n1. `db/log.cc` `LogWriter::Append` `Post`: sends it.\n",
    "db/log.cc": "Status LogWriter::Append() {\n  return Post();\n}\n",
    "docs/other.md": "# Other\n\n## 2. `More`\n\n## The rest of it\n",
    "include/nacre/options.h": "struct DBOptions {\n  int slab_size = 0;\n};\n"
                               "struct Options : public DBOptions {\n  int levels;\n};\n",
    "db/wal/log.h": "// See docs/page.md, section 1, nacre/options.h and DBOptions::slab_size.\n"
                    "class LogWriter {\n  void Append();\n};\n",
    "db/properties.cc": 'const char* kNames[] = {"stats", "space.", "user-bytes", "bench_name"};\n'
                        'const char* kLevel = "num-files-at-level";\n'
                        'const char* kMetric = "nacre_reads_total";\n',
    "ctl/flags.cc": 'DEFINE_string(pool, "", "The pool; else NACRE_POOL.");\n',
    "tests/db/db_bench.cc": "// As db/wal/log.h says.\n",
    "ops/bench/run.py": '"""A tool."""\n',
    "tests/run.py": '"""Uses db/wal/log.h."""\nargs.add_argument("--seeds")  # As --pool.\n',
}

# (what is planted, file, text added to it, rule that must be reported)
PLANTED = [
    ("a page names a file", "docs/page.md", "`db/log.h`\n", "file"),
    ("a page names a file alone", "docs/page.md", "`logs.cc`\n", "file"),
    ("a page names a folder", "docs/page.md", "in db/manifest/ it is\n", "file"),
    ("a page names a folder of ops", "docs/page.md", "in ops/benches/ it is\n", "file"),
    ("a comment names a file", "db/wal/log.h", "// As db/wal/other.cc does.\n", "file"),
    ("a comment names a page", "db/wal/log.h", "// docs/gone.md has it.\n", "file"),
    ("a comment of Python names a file", "tests/run.py", "# See db/gone.cc.\n", "file"),
    ("a docstring names a file", "tests/run.py", '"""As in db/gone.cc."""\n', "file"),
    ("a link", "docs/page.md", "[x](gone)\n", "link"),
    ("an anchor", "docs/page.md", "[x](other.md#gone)\n", "link"),
    ("an anchor here", "docs/page.md", "[x](#gone)\n", "link"),
    ("a section of another page", "docs/page.md", "other.md, section 3\n", "section"),
    ("a section over two lines", "db/wal/log.h", "// docs/page.md,\n// section 8.\n", "section"),
    ("a section of the page itself", "docs/page.md", "(section 2)\n", "section"),
    ("two sections of one number", "docs/page.md", "## 1. Again\n", "section"),
    ("a heading", "db/wal/log.h", '// See docs/other.md, "Gone".\n', "section"),
    ("an option on a page", "docs/page.md", "`Options::gone_size`\n", "member"),
    ("an option in a comment", "db/wal/log.h", "// By DBOptions::gone_size.\n", "member"),
    ("a method", "db/wal/log.h", "// LogWriter::Gone does that.\n", "member"),
    ("a class", "docs/page.md", "`LogGone`\n", "name"),
    ("a field", "docs/page.md", "`gone_size`\n", "name"),
    ("a program", "docs/page.md", "`micro_gone`\n", "name"),
    ("a step of the tour", "docs/tour.md", "2. `db/log.cc` `Gone`: x\n", "tour"),
    ("a long tour", "docs/tour.md", "## A Put\n" + "1. `db/log.cc` `Post`: x\n" * 16, "tour"),
    ("a step elsewhere", "docs/tour.md", "2. `db/properties.cc` `Post`: x\n", "tour"),
    ("a step without a function", "docs/tour.md", "2. `db/log.cc`: x\n", "tour"),
    ("a room that is not listed", "docs/design.md", "", "room"),
    ("a flag", "docs/page.md", "--gone=1\n", "flag"),
    ("a flag in a comment", "ctl/flags.cc", "// As --gone says.\n", "flag"),
    ("a property", "docs/page.md", "`nacre.gone`\n", "property"),
    ("a part of a property", "docs/page.md", "`nacre.space.gone-bytes`\n", "property"),
    ("a metric", "docs/page.md", "`nacre_gone_total`\n", "metric"),
    ("a variable", "docs/page.md", "NACRE_GONE\n", "metric"),
]


class CheckNamesTest(unittest.TestCase):
    def check(self, tree: dict[str, str]) -> list[check_names.Violation]:
        with tempfile.TemporaryDirectory() as folder:
            for path, text in tree.items():
                file = pathlib.Path(folder) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return check_names.check_tree(pathlib.Path(folder))

    def test_clean_tree_passes(self):
        self.assertEqual([], self.check(CLEAN_TREE))

    def test_wrong_names_are_found(self):
        for what, path, text, rule in PLANTED:
            with self.subTest(what):
                tree = CLEAN_TREE | {path: CLEAN_TREE[path] + text}
                if rule == "room":
                    tree["db/manifest/edit.h"] = "struct Edit {};\n"
                found = self.check(tree)
                self.assertTrue(found, "nothing reported")
                self.assertEqual({rule}, {v.rule for v in found}, found)
                self.assertEqual({path}, {v.path for v in found}, found)

    def test_lines_are_those_of_the_names(self):
        tree = CLEAN_TREE | {"docs/page.md": PAGE + "\n`db/gone.h`\n"}
        self.assertEqual([PAGE.count("\n") + 2], [v.line for v in self.check(tree)])


if __name__ == "__main__":
    unittest.main()
