"""Goal: check_rules.py finds each kind of violation, and only those.

Method: a small tree that follows all rules passes; then one violation at a time is planted in a
copy of it, and exactly that rule has to be reported at exactly that file.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import check_rules  # noqa: E402

HEADER = "#pragma once\n\n/// A thing. Thread safety: none.\nclass Thing {};\n"

CLEAN_TREE = {
    "include/nacre/api.h": '#pragma once\n\n#include "nacre/other.h"\n\n/// Api.\nclass Api {};\n',
    "util/thing.h": HEADER,
    "util/thing.cc": '#include "util/thing.h"\n\nint Two() { return 1\'000 + \'"\'; }\n',
    "util/wide.h": "#pragma once\n/// Sixty methods.\nclass Wide {\n" + "  int F();\n" * 60
                   + "  int value_ GUARDED_BY(F());\n  using G = int (*)(int);\n"
                   + "  std::map<int, std::function<int(int)>> value_;\n};\n",
    "util/stateful.h": "#pragma once\n/// 25 private fields.\nclass Stateful {\n"
                       + "  std::array<int, 2> value_[2] GUARDED_BY(mutex_) = {};  // A.\n" * 25
                       + "  static int count_;\n  int Count() const { return value_; }\n"
                       + "  int public_one = 0;\n  struct Inner {\n    int value_;\n  };\n};\n",
    "util/words.cc": 'const char* kText = "exit(1) \\" // abort()";  // Why exit(1) is wrong.\n',
    "util/comments.cc": "int Two();  // The number\n            // Of the Beast.\n"
                        "// Tells who waits, and how\n// Of(2) is made.\n"
                        'const char* kText = "// Of nobody";\n',
    "util/statics.cc": "  static constexpr Thing kThings[] = {1};\n"
                       "  static const NeverDestroyed<std::string> kName;\n"
                       "  static Registry* const registry = Make();\n"
                       "  static Status Open(const std::string& name);\n"
                       "  static std::atomic<int> count;\nstd::string NameOf(int);\n",
    "adapters/python/setters.cc": "  static const Setters kSetters = {};\n",
    "pool/connect/spin_wait.h": HEADER + "int R() { return Simulation::Current() ? 0 : 9; }\n",
    "rdma/shm/poll.cc": "auto now = std::chrono::steady_clock::now();\n",
    "rdma/link.cc": '#include "util/thing.h"\n',
    "table/reader.h": '#pragma once\n\n// Reads.\n\n#include "nacre/api.h"\n\nclass R {};\n',
    "pool/store/table.h": '#pragma once\n#include "pool/client.h"\n' + HEADER[14:],
    "pool/client.h": '#pragma once\n#include "pool/wire/control.pb.h"\n' + HEADER[14:],
    "jobs/job.h": '#pragma once\n#include "pool/client.h"\n' + HEADER[14:],
    "memnode/memory_node.h": '#pragma once\n#include "jobs/job.h"\n' + HEADER[14:],
    "memnode/server_main.cc": "int main() { exit(1); }\n",
    "db/db.cc": '#include "db/wal/log.h"\n#include "jobs/job.h"\n',
    "db/wal/log.h": HEADER,
    "db/manifest/manifest.cc": '#include "db/wal/log.h"\n',
    "rdma/tcp/device.cc": '#include "rdma/transport.h"\n#include "rdma/tcp/ring.h"\n',
    "rdma/open_device.cc": '#include "rdma/tcp/device.h"\n#include "rdma/shm/device.h"\n',
    "sqlite/query/plan.cc": '#include "sqlite/table.h"\n#include "sqlite/row/row.h"\n',
    "db_bench/report/line.cc": '#include "db_bench/engine/db.h"\n#include "db_bench/run.h"\n',
    "db_bench/run.cc": '#include "db/db.h"\n\nvoid Stop() { exit(1); }\n',
    "adapters/leveldb/open.cc": '#include "db/db.h"\n#include "adapters/common/text.h"\n',
    "tests/adapters/program.c": '#include "nacre/api.h"\n',
    "tests/db/db_test.cc": '#include "db/db.h"\n#include "tests/support/model.h"\n',
    "README.md": "# A page\n\n|" + " a wide table |" * 20 + "\n\n    " + "printed " * 20 + "x\n\n"
                 + "```\n" + "code" * 40 + "\n```\n" + "x" * 120 + "\n",
    "docs/design.md": "# D\n\n## 1. Words\n\n" + "| a | b |\n" * 45
                      + "\n## 2. Parts\n\n" + "| a |\n" * 9,
    "examples/notes.md": "a-long-line" * 20 + "\n",
    "build/junk.cc": "\t// TO" "DO\n",
}

# (what is planted, file, text, rule that must be reported)
PLANTED = [
    ("util sees table", "util/bad.cc", '#include "table/reader.h"\n', "layering"),
    ("rdma sees table", "rdma/bad.cc", '#include "table/reader.h"\n', "layering"),
    ("table sees rdma", "table/bad.cc", '#include "rdma/transport.h"\n', "layering"),
    ("memnode sees db", "memnode/bad.cc", '#include "db/db.h"\n', "layering"),
    ("db sees db_bench", "db/bad.cc", '#include "db_bench/run.h"\n', "layering"),
    ("db sees adapters", "db/bad.cc", '#include "adapters/c/open.h"\n', "layering"),
    ("RocksDB's files see connections", "adapters/rocksdb_fs/bad.cc",
     '#include "pool/connect/lane.h"\n', "layering"),
    ("adapters see db_bench", "adapters/c/bad.cc", '#include "db_bench/run.h"\n', "layering"),
    ("an adapter sees another", "adapters/leveldb/bad.cc", '#include "adapters/c/open.h"\n',
     "layering"),
    ("the C API sees the database", "adapters/c/bad.cc", '#include "db/db.h"\n', "layering"),
    ("a backend sees another", "rdma/tcp/bad.cc", '#include "rdma/shm/ring.h"\n', "layering"),
    ("rows see queries", "sqlite/row/bad.cc", '#include "sqlite/query/plan.h"\n', "layering"),
    ("queries see commands", "sqlite/query/bad.cc", '#include "sqlite/command_log/log.h"\n',
     "layering"),
    ("engines see reports", "db_bench/engine/bad.cc", '#include "db_bench/report/line.h"\n',
     "layering"),
    ("a C program ends a line with white space", "tests/adapters/bad.c", "int x; \n", "layout"),
    ("db_bench sees tests", "db_bench/bad.cc", '#include "tests/support/model.h"\n', "layering"),
    ("public sees util", "include/nacre/bad.h", '#include "util/thing.h"\n' + HEADER, "layering"),
    ("relative include", "util/bad.cc", '#include "thing.h"\n', "layering"),
    ("unknown folder", "misc/bad.cc", "int x;\n", "layering"),
    ("db sees the node", "db/bad.cc", '#include "memnode/memory_node.h"\n', "layering"),
    ("a room of db sees the node", "db/wal/bad.cc", '#include "memnode/server.h"\n', "layering"),
    ("pool sees the node", "pool/read/bad.cc", '#include "memnode/server.h"\n', "layering"),
    ("pool sees jobs", "pool/store/bad.cc", '#include "jobs/job.h"\n', "layering"),
    ("pool sees the rooms above it", "pool/bad.cc", '#include "pool/store/table.h"\n', "layering"),
    ("connections see the client", "pool/connect/bad.cc", '#include "pool/client.h"\n',
     "layering"),
    ("readers see the client", "pool/read/bad.cc", '#include "pool/client.h"\n', "layering"),
    ("space sees tables", "pool/space/bad.cc", '#include "pool/store/table.h"\n', "layering"),
    ("the wire sees connections", "pool/wire/bad.cc", '#include "pool/connect/link.h"\n',
     "layering"),
    ("jobs see db", "jobs/bad.cc", '#include "db/db.h"\n', "layering"),
    ("a room sees what is above all rooms", "db/wal/bad.cc", '#include "db/db.h"\n', "layering"),
    ("a room sees one above it", "db/wal/bad.cc", '#include "db/manifest/edit.h"\n', "layering"),
    ("a room of table sees its root", "table/index/bad.cc", '#include "table/reader.h"\n',
     "layering"),
    ("util sees its rooms", "util/bad.cc", '#include "util/threads/thread.h"\n', "layering"),
    ("a room of util sees another", "util/codes/bad.cc", '#include "util/threads/thread.h"\n',
     "layering"),
    ("no pragma once", "util/bad.h", HEADER[14:], "header"),
    ("no comment", "util/bad.h", "#pragma once\n\nclass Thing {};\n", "header"),
    ("comment elsewhere", "util/bad.h", "#pragma once\n\nclass A {\n  // a\n};\n", "header"),
    ("using namespace", "util/bad.h", HEADER + "using namespace std;\n", "header"),
    ("a fragment above", "util/bad.cc", "// Of the segment.\nint x;\n", "comments"),
    ("a fragment behind", "util/bad.h", HEADER + "int x;  ///< Of it.\n", "comments"),
    ("a fragment below another", "util/bad.cc", "int x;  // A.\n// Of it.\nint y;\n", "comments"),
    ("a subject without a name", "util/bad.cc", "// A lock. Who waits sleeps.\n", "comments"),
    ("whoever", "util/bad.cc", "// Whoever\n// waits sleeps.\n", "comments"),
    ("nobody", "util/bad.proto", "// It is needed by\n// nobody.\n", "comments"),
    ("unfinished", "util/bad.cc", "// TO" "DO: more\n", "words"),
    ("unfinished in CMake", "util/CMakeLists.txt", "# FIX" "ME\n", "words"),
    ("somebody's path", "docs/bad.md", "see /ho" "me/me/x\n", "words"),
    ("if 0", "util/bad.cc", "#if " "0\n#endif\n", "dead-code"),
    ("call in a comment", "util/bad.cc", "  // Flush(table, 3);\n", "dead-code"),
    ("block in a comment", "util/bad.cc", "// if (x) {\n// }\n", "dead-code"),
    ("exit", "util/bad.cc", "void F() { exit(1); }\n", "process"),
    ("std::abort", "db/bad.cc", "void F() { std::abort(); }\n", "process"),
    ("static of std", "db/bad.cc", "  static const std::vector<int> kAll = {1};\n", "statics"),
    ("static with arguments", "db/bad.cc", '  static std::string name("a");\n', "statics"),
    ("static of a class", "util/bad.cc", "  static const SystemClock clock;\n", "statics"),
    ("global", "include/nacre/bad.h", HEADER + 'inline const std::string kA = "a";\n', "statics"),
    ("a class that owns everything", "db/bad.h", "#pragma once\n/// All.\nclass Bad {\n"
     + "  int F() EXCLUDES(mutex_) { return G(1); }\n" * 61 + "};\n", "classes"),
    ("a class that keeps everything", "db/bad.h", "#pragma once\n/// All.\nclass Bad {\n"
     + "  std::map<int, F(int)> field_ GUARDED_BY(mutex_){1};\n" * 26 + "};\n", "classes"),
    ("the machine's clock", "db/bad.cc", "auto t = std::chrono::steady_clock::now();\n", "globals"),
    ("the machine's chance", "pool/bad.cc", "std::random_device device;\n", "globals"),
    ("a question to the simulation", "db/wal/bad.cc", "if (Simulation::Current()) return;\n",
     "globals"),
    ("disabled test", "tests/util/bad_test.cc", "TEST(A, DISABLED" "_B) {}\n", "tests"),
    ("tab", "util/bad.cc", "int x;\t\n", "layout"),
    ("white space at the end", "docs/bad.md", "text \n", "layout"),
    ("carriage return", "util/bad.cc", "int x;\r\n", "layout"),
    ("no newline at the end", "util/bad.cc", "int x;", "layout"),
    ("wide line", "util/bad.cc", "int " + "x" * 100 + ";\n", "layout"),
    ("wide prose", "docs/bad.md", "word " * 24 + "more\n", "prose"),
    ("wide prose on the first page", "README.md", "```\n```\n" + "x" * 121 + "\n", "prose"),
    ("long overview", "docs/design.md", "## 0\n## 1. Words\n| a |\n" + "word\n" * 4995, "overview"),
    ("long glossary", "docs/design.md", "# D\n## 1. Words\n" + "| a |\n" * 46, "overview"),
    ("no glossary", "docs/design.md", "# D\n## 2. Parts\n| a |\n", "overview"),
    ("long file", "util/bad.cc", "int x;\n" * 601, "layout"),
]


def write_tree(root: pathlib.Path, tree: dict[str, str]) -> None:
    for path, text in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())


class CheckRulesTest(unittest.TestCase):
    def check(self, tree: dict[str, str]) -> list[check_rules.Violation]:
        with tempfile.TemporaryDirectory() as folder:
            write_tree(pathlib.Path(folder), tree)
            return check_rules.check_tree(pathlib.Path(folder))

    def test_clean_tree_passes(self):
        self.assertEqual([], self.check(CLEAN_TREE))

    def test_planted_violations_are_found(self):
        for what, path, text, rule in PLANTED:
            with self.subTest(what):
                found = self.check(CLEAN_TREE | {path: text})
                self.assertTrue(found, "nothing reported")
                self.assertEqual({rule}, {v.rule for v in found}, found)
                self.assertEqual({path}, {v.path for v in found}, found)

    def test_longest_allowed_file_and_line_pass(self):
        tree = {"util/long.cc": "int x;\n" * 600, "util/wide.cc": "int " + "x" * 95 + ";\n"}
        self.assertEqual([], self.check(tree))

    def test_a_folder_of_too_many_files_is_found(self):
        full = {f"util/file{number:02}.cc": "int x;\n" for number in range(40)}
        rest = {path: text for path, text in CLEAN_TREE.items() if not path.startswith("util/")}
        rest["util/thing.h"] = HEADER
        del full["util/file00.cc"]
        self.assertEqual([], self.check(rest | full))
        found = self.check(rest | full | {"util/file40.cc": "int x;\n"})
        self.assertEqual([("util", "folders")], [(v.path, v.rule) for v in found])

    def test_command_line(self):
        command = [sys.executable, str(HERE / "check_rules.py")]
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            write_tree(root, CLEAN_TREE)
            self.assertEqual(0, subprocess.run(command + [folder], check=False).returncode)
            write_tree(root, {"util/bad.cc": "int x; \n"})
            answer = subprocess.run(command + [folder], check=False, capture_output=True, text=True)
            self.assertEqual(1, answer.returncode)
            self.assertIn("util/bad.cc:1: layout:", answer.stdout)


class RunScriptTest(unittest.TestCase):
    """`./run` answers a wrong word or argument with a message and exit code 1."""

    def run_word(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(HERE.parents[1] / "run"), *words], check=False,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def test_help_lists_the_words(self):
        answer = self.run_word("help")
        self.assertEqual(0, answer.returncode)
        for word in ("deps", "build", "bench", "test", "asan", "tsan", "lint", "fuzz", "help"):
            self.assertRegex(answer.stdout, rf"(?m)^  {word}\b")

    def test_wrong_words_are_named(self):
        for words in (["tset"], ["build", "relaese"], ["fuzz", "soon"], ["fuzz", "0"]):
            with self.subTest(words):
                answer = self.run_word(*words)
                self.assertEqual(1, answer.returncode)
                self.assertIn(f"'{words[-1]}'", answer.stderr)


if __name__ == "__main__":
    unittest.main()
