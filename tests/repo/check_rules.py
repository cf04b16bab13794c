"""House rules that a machine can check: layering of includes, headers, forbidden words, layout.

usage: check_rules.py ROOT

Prints one line for each violation, as `file:line: rule: message`, and answers 1 if there is any.
Why the rules are as they are: CONTRIBUTING.md and docs/design.md, section 2.
"""

import collections
import pathlib
import re
import sys
from dataclasses import dataclass
from typing import Callable, Iterator

# For each folder with rules of its own, the folders whose headers it may include besides its own;
# "nacre" is include/nacre. A name stands for the folders in it, too, unless it ends with a slash. A
# folder that is not named has the rules of the one that it lies in.
BELOW_POOL = ("nacre", "util", "rdma", "table")
BELOW_DB = ("nacre", "util", "metrics", "rdma", "table", "pool", "jobs")
LAYERS = {
    "include": ("nacre",),
    "util": ("nacre",),
    "util/threads": ("nacre", "util/"),
    "util/codes": ("nacre", "util/"),
    "util/crypto": ("nacre", "util/", "util/codes"),
    "util/api": ("nacre", "util"),
    "util/memory": ("nacre", "util/"),
    "metrics": ("nacre", "util"),
    "rdma": ("nacre", "util", "rdma"),
    "rdma/shm": ("nacre", "util", "rdma/"),
    "rdma/tcp": ("nacre", "util", "rdma/"),
    "rdma/verbs": ("nacre", "util", "rdma/"),
    "table/format": ("nacre", "util"),
    "table/index": ("nacre", "util", "table/format"),
    "table/ranges": ("nacre", "util", "table/format", "table/index"),
    "table/iterator": ("nacre", "util", "table/format", "table/index", "table/ranges"),
    "table": ("nacre", "util", "table/format", "table/index", "table/ranges", "table/iterator"),
    "table/merge": ("nacre", "util", "table"),
    "pool/wire": BELOW_POOL,
    "pool/connect": (*BELOW_POOL, "pool/wire"),
    "pool/serve": (*BELOW_POOL, "pool/wire"),
    "pool/read": (*BELOW_POOL, "pool/wire", "pool/connect"),
    "pool": (*BELOW_POOL, "pool/wire", "pool/connect", "pool/read"),
    "pool/space": (*BELOW_POOL, "pool/", "pool/wire", "pool/connect", "pool/read"),
    "pool/store": (*BELOW_POOL, "pool/", "pool/wire", "pool/connect", "pool/read"),
    "jobs": ("nacre", "util", "rdma", "table", "pool"),
    "memnode": ("nacre", "util", "metrics", "rdma", "table", "pool", "jobs"),
    "db/wal": BELOW_DB,
    "db/options": (*BELOW_DB, "db/cache"),
    "db/memtable": BELOW_DB,
    "db/manifest": (*BELOW_DB, "db/wal"),
    "db/version": (*BELOW_DB, "db/manifest"),
    "db/family": (*BELOW_DB, "db/manifest", "db/memtable", "db/options", "db/version"),
    "db/cache": BELOW_DB,
    "db/context": (*BELOW_DB, "db/cache", "db/manifest", "db/memtable", "db/options",
                   "db/version", "db/family"),
    "db/write": (*BELOW_DB, "db/wal", "db/memtable", "db/family", "db/context"),
    "db/read": (*BELOW_DB, "db/cache", "db/family", "db/version", "db/context", "db/write"),
    "db/commit": (*BELOW_DB, "db/wal", "db/manifest", "db/version", "db/family", "db/context",
                  "db/write"),
    "db/space": (*BELOW_DB, "db/wal", "db/version", "db/family", "db/context", "db/commit"),
    "db/compaction": (*BELOW_DB, "db/manifest", "db/version", "db/family", "db/context", "db/write",
                      "db/commit", "db/space"),
    "db/flush": (*BELOW_DB, "db/memtable", "db/manifest", "db/version", "db/family", "db/context",
                 "db/write", "db/commit", "db/space", "db/compaction"),
    "db/redundancy": (*BELOW_DB, "db/wal", "db/manifest", "db/version", "db/family", "db/context",
                      "db/commit"),
    "db/salvage": (*BELOW_DB, "db/wal", "db/manifest"),
    "db/metrics": (*BELOW_DB, "db/", "db/cache", "db/context", "db/family", "db/version"),
    "db/follower": (*BELOW_DB, "db/cache", "db/metrics", "db/wal", "db/manifest", "db/memtable",
                    "db/options", "db/version", "db/family", "db/read"),
    "db/checkpoint": (*BELOW_DB, "db/", "db/memtable", "db/manifest", "db/family", "db/version",
                      "db/write", "db/follower"),
    "db": (*BELOW_DB, "db"),
    "transactions": (*BELOW_DB, "db"),
    "sharding": (*BELOW_DB, "db", "transactions"),
    "etcd": ("nacre", "util", "sharding/members"),
    "adapters/common": ("nacre", "util"),
    "adapters/c": ("nacre", "util", "adapters/common"),
    "adapters/c_etcd": ("nacre",),
    "adapters/leveldb": (*BELOW_DB, "db", "adapters/common"),
    "adapters/python": ("nacre", "util"),
    "adapters/rocksdb": (*BELOW_DB, "db"),
    "adapters/rocksdb_fs": (*BELOW_POOL, "pool/", "pool/wire", "pool/read", "pool/space",
                            "pool/store"),
    "db_bench": (*BELOW_DB, "db", "sharding", "adapters", "db_bench"),
    "db_bench/engine": (*BELOW_DB, "db", "sharding", "adapters", "db_bench/"),
    "db_bench/report": (*BELOW_DB, "db", "adapters", "db_bench/", "db_bench/engine"),
    "perf": ("nacre", "util", "rdma", "pool"),
    "console": ("nacre", "util"),
    "ctl": (*BELOW_DB, "db", "sharding", "console"),
    "archive": ("nacre", "util", "metrics"),
    "server": ("nacre", "util", "metrics", "server"),
    "server/resp": ("nacre", "util"),
    "server/loop": ("nacre", "util"),
    "server/net": ("nacre", "util"),
    "server/store": ("nacre", "util", "server/resp", "server/loop"),
    "server/cluster": ("nacre", "util", "server/loop", "server/store"),
    "server/scripts": ("util", "server/resp"),
    "server/acl": ("nacre", "util", "server/resp"),
    "server/session": ("nacre", "util", "server/resp", "server/loop", "server/net", "server/store",
                       "server/cluster", "server/scripts", "server/acl"),
    "server/commands": ("nacre", "util", "server/resp", "server/loop", "server/store",
                        "server/cluster", "server/scripts", "server/acl", "server/session"),
    "sqlite": ("nacre", "util", "sqlite"),
    "sqlite/row": ("nacre", "util", "sqlite/"),
    "sqlite/query": ("nacre", "util", "sqlite/", "sqlite/row"),
    "sqlite/command_log": ("nacre", "util", "sqlite/", "sqlite/row"),
    "examples": ("nacre",),
    "tests": (*BELOW_DB, "memnode", "db", "transactions", "sharding", "etcd", "adapters",
              "db_bench", "perf", "console", "ctl",
              "sqlite", "archive", "server", "examples"),
}

# A folder with more is several rooms.
MAX_FILES = 40
MAX_LINES = 600
MAX_COLUMNS = 100
MAX_PROSE_COLUMNS = 120
# A class with more methods is several owners; those that mirror RocksDB's API have what that has.
MAX_METHODS = 60
MORE_METHODS = {"DB": 92, "NacreRocksdb": 75, "ShardedDBImpl": 80,
                "Transaction": 63}
# So is one with more private fields, whose names end with "_". Structs of options and of figures
# have public ones, as many as there are options.
MAX_FIELDS = 25
MORE_FIELDS = {"VerbsQueuePair": 37, "PointLookup": 31, "FollowerDB": 27,
               "FollowerState": 27, "ShmQueuePair": 26}
# What a newcomer reads first, and the words to be learnt for it, stay small: more goes to the pages
# that it names, and a new word replaces another.
OVERVIEW = "docs/design.md"
CHANGELOG = "CHANGELOG.md"  # It names what later versions no longer have.
MAX_OVERVIEW_WORDS = 5000
MAX_GLOSSARY_LINES = 45

CPP_SUFFIXES = {".h", ".cc", ".c"}
COMMENTED_SUFFIXES = CPP_SUFFIXES | {".proto"}
CODE_SUFFIXES = CPP_SUFFIXES | {".proto", ".py", ".cmake", ".sh"}
TEXT_SUFFIXES = CODE_SUFFIXES | {".md", ".json", ".txt", ".yml", ".yaml"}
TEXT_NAMES = {"run", ".clang-format", ".clang-tidy", ".gitignore"}
SKIPPED_FOLDERS = {"build", ".git", ".cache", "__pycache__"}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
TYPE_DEFINITION = re.compile(r"^\s*(?:class|struct|union|enum)\b[^;]*$")
STRUCT = re.compile(r"\b(?:struct|class) (\w+)(?: final)?(?:\s*:\s*([^{;]*?))?\s*\{")
ANNOTATION = re.compile(r"\b(?:(?:PT_)?GUARDED_BY|REQUIRES|EXCLUDES|(?:TRY_)?ACQUIRE|RELEASE|"
                        r"ACQUIRED_\w+|RETURN_CAPABILITY|alignas|noexcept)"
                        r"\((?:[^()]|\([^()]*\))*\)")
TYPE_ARGUMENTS = re.compile(r"(?<=\w)<[^<>;]*>")
NO_METHOD = re.compile(r"\b(?:using|friend|static_assert)\b|^\s*(?:struct|class|enum|union)\b")
FIELD = re.compile(r"^(?!.*\bstatic\b)[^=(]*\s\w+_(?:\[[^]]*\])*\s*(?:=|$)", re.DOTALL)
# Written in two parts so that this file passes its own rules.
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")
SWITCHED_OFF = re.compile(r"^\s*#\s*if\s+(?:0|false)\b")
COMMENTED_OUT = re.compile(
    r"^\s*//\s*(?:\}|return\b.*;|[\w:.\->]+\(.*\);|(?:if|for|while) \(.*\) \{)$")
PROCESS_END = re.compile(r"(?<![\w.>])(?:exit|_exit|_Exit|quick_exit|abort|terminate)\s*\(")
USING_NAMESPACE = re.compile(r"^\s*using\s+namespace\b")
DISABLED_TEST = re.compile(r"\bDISABLED" r"_\w")
# `exit` destroys statics while threads of open databases still use them. A static of one of these
# types, or of a class that is not listed, has a destructor; pointers and references have none.
LIBRARY = ("include/", "util/", "metrics/", "rdma/", "table/", "pool/", "jobs/", "memnode/", "db/",
           "transactions/", "sharding/", "etcd/", "adapters/", "sqlite/")
INTERPRETER = "adapters/python/"  # Its threads are the interpreter's, which ends them before.
OWNING = (r"std::(?:string|vector|deque|list|function|shared_ptr|unique_ptr|regex|thread|"
          r"(?:unordered_)?(?:multi)?(?:map|set))\b")
STATIC_OBJECT = re.compile(
    r"^\s*(?:inline\s+|thread_local\s+)*static\s+(?:const\s+|inline\s+|thread_local\s+)*"
    rf"(?:(?!constexpr|constinit|NeverDestroyed|std::atomic)(?:{OWNING}|(?:\w+::)*[A-Z])"
    r"[\w:<>, ]*\s\w+\s*(?:=|\{|;)|" + OWNING + r"[\w:<>, ]*\s\w+\(\"\")")
GLOBAL_OBJECT = re.compile(
    rf"^(?:inline\s+|const\s+|thread_local\s+)*{OWNING}[\w:<>, ]*\s\w+\s*(?:=|\{{|;|\(\"\")")
# The engine gets time and chance from what a simulation replaces; of it ask only the lowest layers,
# and who spins or tosses coins.
ENGINE = ("table/", "pool/", "jobs/", "memnode/", "db/", "transactions/", "sqlite/")
MACHINE = re.compile(r"\w_clock::now\(|\brandom_device\b|(?<![\w:.>])s?rand\(")
SIMULATION = re.compile(r"\bSimulation::Current\(")
ASK_SIMULATION = ("skip_list.h", "write_sequencer.cc", "spin_wait.h", "request_server.cc")
PRIVATE_PATH = re.compile(r"(?<![\w.])/(?:home|root|work)" r"/\w")

# Comments and literals of C++; an apostrophe after a digit separates digits.
LITERALS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|"""
    r"""(?<!\w)'(?:\\.|[^'\\\n])+'""",
    re.DOTALL)

# A comment is made of sentences with subjects that can be named: not "Of the segment.", "Who waits
# is told." or "Somebody needs it.".
FRAGMENT = re.compile(r"^Of\b|(?:^|(?<=[.:;] ))Who\b|\b[Ww]hoever\b|"
                      r"\b(?:[Nn]o|[Ss]ome)body\b")


@dataclass(frozen=True)
class Violation:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


def without_literals(text: str) -> str:
    """`text` with comments and literals emptied; lines keep their numbers."""
    return LITERALS.sub(lambda match: "\n" * match.group(0).count("\n") or '""', text)


def find_files(root: pathlib.Path) -> Iterator[pathlib.Path]:
    for path in sorted(root.iterdir()):
        if path.is_dir():
            if path.name not in SKIPPED_FOLDERS:
                yield from find_files(path)
        elif path.suffix in TEXT_SUFFIXES or path.name in TEXT_NAMES:
            yield path


def includes_of(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1)


def layer_of(folder: str) -> str | None:
    """The folder in LAYERS that `folder` is or lies in."""
    while folder not in LAYERS:
        if "/" not in folder:
            return None
        folder = folder.rsplit("/", 1)[0]
    return folder


def may_include(layer: str, target: str) -> bool:
    """Whether files of `layer` may include headers of the folder `target`."""
    return layer_of(target) == layer or any(
        target == allowed.rstrip("/") or target.startswith(allowed + "/")
        for allowed in LAYERS[layer])


def check_layering(path: str, text: str) -> Iterator[Violation]:
    layer = layer_of(path.rsplit("/", 1)[0])
    if layer is None:
        yield Violation(path, 1, "layering", f"{path.split('/')[0]}/ is no layer")
        return
    for number, target in includes_of(text):
        folder = target.rsplit("/", 1)[0] if "/" in target else ""
        if folder != "nacre" and not folder.startswith("nacre/") and layer_of(folder) is None and (
                not any(known.startswith(folder + "/") for known in LAYERS) or folder == ""):
            yield Violation(path, number, "layering", f'"{target}" is not a path from the root')
        elif not may_include(layer, folder):
            yield Violation(path, number, "layering", f'{layer}/ must not include "{target}"')


def check_folders(paths: list[str]) -> Iterator[Violation]:
    """No folder holds more files than one looks through."""
    files = collections.Counter(path.rsplit("/", 1)[0] for path in paths if "/" in path)
    for folder, count in sorted(files.items()):
        if count > MAX_FILES:
            yield Violation(folder, 1, "folders",
                            f"{count} files, more than {MAX_FILES}; these are several rooms")


def check_header(path: str, text: str, code: str) -> Iterator[Violation]:
    if not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield Violation(path, 1, "header", "no #pragma once")
    for number, line in enumerate(code.splitlines(), 1):
        if USING_NAMESPACE.match(line):
            yield Violation(path, number, "header", "using namespace in a header")
    if path.startswith("tests/"):
        return
    if not has_purpose(text):
        yield Violation(path, 1, "header", "no comment on the purpose of its types")


def has_purpose(text: str) -> bool:
    """A comment stands before the first type, or directly above one of the types."""
    above = ""
    commented = False
    first_type = True
    for line in text.splitlines():
        is_comment = line.lstrip().startswith("//")
        commented = commented or is_comment
        if TYPE_DEFINITION.match(line):
            if (first_type and commented) or above.lstrip().startswith("//"):
                return True
            first_type = False
        if not line.startswith("template"):
            above = line
    return first_type and commented


def struct_bodies(code: str) -> Iterator[tuple[str, list[str], str]]:
    """Name, bases and body of each struct or class."""
    for match in STRUCT.finditer(code):
        depth, end = 1, match.end()
        while end < len(code) and depth:
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        yield match.group(1), re.findall(r"\w+", match.group(2) or ""), code[match.end():end]


def statements_of(body: str) -> list[str]:
    """What the body of a class declares, without arguments of types and what is in braces."""
    depth, flat = 0, []
    for character in body.replace('""', ""):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            flat.append(";" if character == "}" else character)
    text = ANNOTATION.sub("", "".join(flat))
    while (stripped := TYPE_ARGUMENTS.sub("", text)) != text:
        text = stripped
    return re.split(r";|\b(?:public|private|protected):", text)


def methods_of(body: str) -> int:
    """How many methods the body of a class declares or defines, constructors included."""
    return sum("(" in statement and not NO_METHOD.search(statement)
               for statement in statements_of(body))


def fields_of(body: str) -> int:
    """How many private fields of its own an object of the class has."""
    return sum(FIELD.search(statement) is not None for statement in statements_of(body))


def check_classes(path: str, code: str) -> Iterator[Violation]:
    for name, _, body in struct_bodies(code):
        count = methods_of(body)
        most = MORE_METHODS.get(name, MAX_METHODS)
        if count > most:
            yield Violation(path, 1, "classes", f"{name} has {count} methods, more than {most}")
        count = fields_of(body)
        most = MORE_FIELDS.get(name, MAX_FIELDS)
        if count > most:
            yield Violation(path, 1, "classes", f"{name} has {count} fields, more than {most}")


def check_cpp(path: str, text: str) -> Iterator[Violation]:
    code = without_literals(text)
    if path.endswith(".h"):
        yield from check_header(path, text, code)
        if not path.startswith("tests/"):
            yield from check_classes(path, code)
    may_end_process = path.endswith("_main.cc") or path.startswith(("db_bench/", "tests/"))
    is_library = path.startswith(LIBRARY) and not path.startswith(INTERPRETER)
    for number, line in enumerate(code.splitlines(), 1):
        if not may_end_process and PROCESS_END.search(line):
            yield Violation(path, number, "process", "library code must not end the process")
        if is_library and (STATIC_OBJECT.match(line) or GLOBAL_OBJECT.match(line)):
            yield Violation(path, number, "statics",
                            "a destructor at exit; see util/never_destroyed.h")
        if path.startswith(ENGINE) and (MACHINE.search(line) or (
                SIMULATION.search(line) and not path.endswith(ASK_SIMULATION))):
            yield Violation(path, number, "globals", "time or chance that no simulation replaces")
        if DISABLED_TEST.search(line):
            yield Violation(path, number, "tests", "a test that is switched off")
        if SWITCHED_OFF.match(line):
            yield Violation(path, number, "dead-code", "switched off by the preprocessor")
    for number, line in enumerate(text.splitlines(), 1):
        if COMMENTED_OUT.match(line):
            yield Violation(path, number, "dead-code", "looks like code in a comment")


def comments_of(text: str) -> Iterator[tuple[int, str]]:
    """The blocks of `//` comments, each joined to one line, with the number of its first line.

    A line belongs to the block before it if its comment stands alone and in the same column.
    """
    lines: list[str] = []
    first = last = column = 0
    for match in LITERALS.finditer(text):
        if not match.group(0).startswith("//"):
            continue
        number = text.count("\n", 0, match.start()) + 1
        begin = text.rfind("\n", 0, match.start()) + 1
        alone = not text[begin:match.start()].strip()
        if lines and not (alone and number == last + 1 and match.start() - begin == column):
            yield first, " ".join(lines)
            lines = []
        if not lines:
            first, column = number, match.start() - begin
        last = number
        lines.append(match.group(0).lstrip("/").lstrip("<").strip())
    if lines:
        yield first, " ".join(lines)


def check_comments(path: str, text: str) -> Iterator[Violation]:
    for number, comment in comments_of(text):
        match = FRAGMENT.search(comment)
        if match:
            yield Violation(path, number, "comments", f'no sentence with "{match.group(0)}"')


def check_layout(path: str, text: str) -> Iterator[Violation]:
    suffix = pathlib.PurePath(path).suffix
    is_code = suffix in CODE_SUFFIXES or suffix == "" or path.endswith("CMakeLists.txt")
    lines = text.split("\n")
    if text and not text.endswith("\n"):
        yield Violation(path, len(lines), "layout", "no newline at the end")
    if is_code and len(lines) - 1 > MAX_LINES:
        yield Violation(path, len(lines) - 1, "layout",
                        f"more than {MAX_LINES} lines; this is usually two files")
    for number, line in enumerate(lines, 1):
        if "\t" in line or "\r" in line:
            yield Violation(path, number, "layout", "tab or carriage return")
        if line != line.rstrip():
            yield Violation(path, number, "layout", "white space at the end of a line")
        if is_code and len(line) > MAX_COLUMNS:
            yield Violation(path, number, "layout", f"more than {MAX_COLUMNS} columns")
        if is_code and UNFINISHED.search(line):
            yield Violation(path, number, "words", "unfinished work belongs in an issue")
        if PRIVATE_PATH.search(line):
            yield Violation(path, number, "words", "a path of somebody's machine")


def is_page(path: str) -> bool:
    """Whether `path` is documentation for people: those pages have rules of their own."""
    return path in ("README.md", "CONTRIBUTING.md") or (
        path.startswith("docs/") and path.endswith(".md"))


def check_page(path: str, text: str) -> Iterator[Violation]:
    """Prose wraps; tables, and code and what programs print, are as wide as they are."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        fenced ^= line.startswith("```")
        if len(line) > MAX_PROSE_COLUMNS and not fenced and not line.startswith(("|", "    ")):
            yield Violation(path, number, "prose", f"more than {MAX_PROSE_COLUMNS} columns")
    if path == OVERVIEW:
        words = len(text.split())
        if words > MAX_OVERVIEW_WORDS:
            yield Violation(path, 1, "overview", f"{words} words, more than {MAX_OVERVIEW_WORDS}")
        glossary = text.partition("\n## 1. Words\n")[2].partition("\n## ")[0]
        terms = sum(line.startswith("|") for line in glossary.splitlines())
        if not 0 < terms <= MAX_GLOSSARY_LINES:
            yield Violation(path, 1, "overview",
                            f"a glossary of {terms} lines, 1 to {MAX_GLOSSARY_LINES} are wanted")


def check_tree(root: pathlib.Path) -> list[Violation]:
    violations = []
    paths = []
    for file in find_files(root):
        path = file.relative_to(root).as_posix()
        paths.append(path)
        try:
            text = file.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            violations.append(Violation(path, 1, "layout", "not UTF-8"))
            continue
        violations += check_layout(path, text)
        if is_page(path) or path == CHANGELOG:
            violations += check_page(path, text)
        if file.suffix in CPP_SUFFIXES:
            violations += check_layering(path, text)
            violations += check_cpp(path, text)
        if file.suffix in COMMENTED_SUFFIXES:
            violations += check_comments(path, text)
    violations += check_folders(paths)
    return sorted(violations, key=lambda v: (v.path, v.line))


def run(usage: str, check: Callable[[pathlib.Path], list[Violation]]) -> int:
    """Checks the tree that the command line names, and prints what is wrong; the exit code."""
    if len(sys.argv) != 2:
        print(usage, file=sys.stderr)
        return 2
    violations = check(pathlib.Path(sys.argv[1]))
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(run(__doc__, check_tree))
