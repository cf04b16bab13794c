"""Whatever pages and comments name exists: files, sections, options, flags, properties, metrics.

usage: check_names.py ROOT

Prints one line for each name that is not there, as `file:line: rule: message`, and answers 1 if
there is any. Pages are README.md, CONTRIBUTING.md and docs/*.md; comments are those of C++, Python,
CMake and shell. A compiler checks what code names; nothing checks prose but this.
"""

import pathlib
import re
import sys
from dataclasses import dataclass
from typing import Iterator

from check_rules import (CPP_SUFFIXES, LITERALS, OVERVIEW, Violation, find_files, is_page, run,
                         struct_bodies, without_literals)

SCRIPT_SUFFIXES = {".py", ".sh", ".cmake"}

# What other projects have, by the first part of a path.
FOREIGN_FOLDERS = {"rocksdb", "leveldb", "db_stress_tool", "infiniband", "sys", "linux", "src",
                   "lib", "fdbserver"}
# Files that exist only where something was built or installed, or in other projects.
FOREIGN_FILES = {"control.pb.h", "infiniband/verbs.h", "db_bench_tool.cc", "sqlite3ext.h",
                 "nacreConfig.cmake", "CMakeLists.txt", "xxhash.h", "version.h", "nacre/version.h"}
# Units that look like a path in a folder of ours.
RATES = {"ops/s", "ops/sec", "ops/second"}
# Words of cmake, apt, ctest, google benchmark, googletest, libFuzzer, useradd and others.
FOREIGN_FLAGS = {"preset", "build", "target", "install", "prefix", "benchmark_filter",
                 "benchmark_min_time", "benchmark_enable_random_interleaving", "gtest_filter",
                 "system", "shell", "now", "no-create-home", "table", "help"}
# Names of RocksDB, of C++ and of other projects that pages compare with.
FOREIGN_NAMES = {"NcrA", "PrivateTmp", "VmPin", "WritePrepared", "ib_read_bw",
                 "max_compaction_bytes", "timeout_us_max"}
# These tell which of RocksDB's names Nacre has not got; only options are looked at there.
COMPARES_WITH_ROCKSDB = ("docs/api.md", "docs/adapters.md", "adapters/rocksdb/")

FILE = re.compile(
    r"(?<![\w./<>~*{}-])((?:[\w+-]+/)*[\w+-]+\.(?:h|cc|md|py|proto|sh|cmake|png))\b(?![\w*/({-])")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SECTION_OF_PAGE = re.compile(r"(\w+\.md)\)?, section (\d+(?:\.\d+)?)")
SECTION_HERE = re.compile(r"\(sections? (\d+(?:\.\d+)?)\b")
HEADING_OF_PAGE = re.compile(r'(\w+\.md)\)?, "([^"]+)"')
MEMBER = re.compile(r"(?<![\w:])(?:nacre::|pool::|rdma::)*([A-Z]\w+)::(\w+)(?!\*)\b")
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9_-]*[a-z0-9])\b")
PROPERTY = re.compile(
    r"(?<![\w./\"-])nacre\.([a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)*)(\.?[A-Z]+)?(\()?")
TOKEN = re.compile(r"(?<![\w/.-])(nacre_[a-z0-9_]+|NACRE_[A-Z0-9_]+)(?![\w*])")
CODE_SPAN = re.compile(r"`([^`\n]+)`")
IDENTIFIER = re.compile(
    r"(?:nacre::)?([A-Z][a-z]+(?:[A-Z]\w*)+|[a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?:\(\))?$")
# A step of the tour: a file, and functions that run there.
STEP = re.compile(r"(?m)^\d+\. `([\w/.]+\.cc)`((?: `[\w:]+`)+)(:?)")
TOUR = "docs/tour.md"
MAX_STEPS = 15
LAYERS_WITH_ROOMS = ("util", "rdma", "table", "pool", "db")
HASH_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#(?!!).*$")
DOCSTRING = re.compile(r'""".*?"""', re.DOTALL)


@dataclass(frozen=True)
class Prose:
    """Text for people, and where it begins."""
    path: str
    line: int
    text: str


def comments_of(path: str, text: str) -> Iterator[Prose]:
    """Blocks of neighbouring comment lines, without their marks."""
    if pathlib.PurePath(path).suffix in CPP_SUFFIXES:
        found = [(match.start(), match.group(0)) for match in LITERALS.finditer(text)
                 if match.group(0).startswith(("//", "/*"))]
    else:
        found = [(match.start(), match.group(0)) for match in HASH_COMMENT.finditer(text)]
        found += [(match.start(), match.group(0)) for match in DOCSTRING.finditer(text)]
    block, first, last = [], 0, -2
    for start, comment in sorted(found):
        line = text.count("\n", 0, start) + 1
        if line != last + 1 and block:
            yield Prose(path, first, "\n".join(block))
            block = []
        first = line if not block else first
        block.append(comment.lstrip("/#*< "))
        last = line + comment.count("\n")
    if block:
        yield Prose(path, first, "\n".join(block))


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


class Tree:
    """What there is to be named."""

    def __init__(self, root: pathlib.Path):
        self.prose: list[Prose] = []
        self.headings: dict[str, list[str]] = {}  # By page.
        self.paths: set[str] = set()
        self.members: dict[str, set[str]] = {}
        self.bases: dict[str, list[str]] = {}
        self.literals: set[str] = set()
        self.quoted: set[str] = set()  # Words in literals.
        self.flags: set[str] = set(FOREIGN_FLAGS)
        self.words: set[str] = set()
        self.sources: dict[str, str] = {}  # Code by path.
        for file in find_files(root):
            self._add(file.relative_to(root).as_posix(), file)
        self.paths |= {file.relative_to(root).as_posix()
                       for folder in ("docs", "tests") for file in (root / folder).rglob("*.*")}
        self.basenames = {path.rsplit("/", 1)[-1] for path in self.paths}
        self.folders = {parent.as_posix() for path in self.paths
                        for parent in pathlib.PurePosixPath(path).parents}

    def _add(self, path: str, file: pathlib.Path) -> None:
        self.paths.add(path)
        text = file.read_text(encoding="utf-8")
        if is_page(path):
            self.prose.append(Prose(path, 1, text))
            self.headings[path.rsplit("/", 1)[-1]] = re.findall(r"(?m)^#+ (.*)$", text)
            return
        if path.startswith("tests/repo/"):  # These name on purpose what is not there.
            return
        if file.suffix in CPP_SUFFIXES:
            self._add_cpp(path, text)
        elif file.suffix in SCRIPT_SUFFIXES or file.name in ("run", "CMakeLists.txt"):
            self.prose += comments_of(path, text)
            code = HASH_COMMENT.sub("", DOCSTRING.sub("", text))
            self.flags |= set(FLAG.findall(code))
            self.words |= set(re.findall(r"\w+", code))
        elif file.suffix in (".proto", ".json", ".yml", ".toml"):
            self.words |= set(re.findall(r"\w+", text))

    def _add_cpp(self, path: str, text: str) -> None:
        self.prose += comments_of(path, text)
        code = without_literals(text)
        self.words |= set(re.findall(r"\w+", code))
        self.sources[path] = code
        literals = [match.group(0) for match in LITERALS.finditer(text)
                    if match.group(0)[0] not in "/'"]
        self.literals |= {literal.strip('"') for literal in literals}
        for literal in literals:
            self.quoted |= set(re.findall(r"\w+", literal))
            self.flags |= set(FLAG.findall(literal))
        self.flags |= set(re.findall(r"\bDEFINE_\w+\(\s*(\w+)", code))
        for name, bases, body in struct_bodies(code):
            self.members.setdefault(name, set()).update(re.findall(r"\w+", body))
            self.bases.setdefault(name, []).extend(bases)

    def has_file(self, name: str, beside: str) -> bool:
        """`name` as a path from the root, of a public header, from `beside`'s folder, or alone."""
        if name in FOREIGN_FILES or name.split("/")[0] in FOREIGN_FOLDERS | {"build"}:
            return True
        if "/" not in name:
            return name in self.basenames
        folder = beside.rsplit("/", 1)[0] if "/" in beside else "."
        return any(path in self.paths for path in (name, f"include/{name}", f"{folder}/{name}"))

    def has_member(self, name: str, member: str) -> bool:
        return member in self.members.get(name, ()) or any(
            self.has_member(base, member) for base in self.bases.get(name, ()) if base != name)

    def has_identifier(self, name: str) -> bool:
        """Of code, of what programs say, of a flag, or of a program made from benchmarks."""
        return name in self.words | self.quoted | self.flags | FOREIGN_NAMES or (
            name.startswith("micro_") and f"tests/{name[len('micro_'):]}" in self.folders)

    def has_property(self, name: str) -> bool:
        """Written out, or as a part behind a part: "space." and "user-bytes"."""
        head, dot, last = name.rpartition(".")
        return bool({name, name + ".", f"nacre.{name}"} & self.literals) or (
            dot != "" and head + dot in self.literals and last in self.literals)


def check_files(tree: Tree, prose: Prose) -> Iterator[tuple[int, str, str]]:
    for match in FILE.finditer(prose.text):
        if not tree.has_file(match.group(1), prose.path):
            yield match.start(), "file", f"there is no {match.group(1)}"
    tops = {folder.split("/")[0] for folder in tree.folders} - {"."}
    for match in re.finditer(r"(?<![\w./<-])([a-z_]+/(?:[\w-]+/)*[\w-]*)(?![\w.*{/-])", prose.text):
        name = match.group(1).rstrip("/")
        top = name.split("/")[0]
        if ("/" in name and top in tops and not tree.has_file(name, prose.path)
                and name not in tree.folders | RATES and f"include/{name}" not in tree.folders):
            yield match.start(), "file", f"there is no {name}"


def check_links(tree: Tree, prose: Prose) -> Iterator[tuple[int, str, str]]:
    for match in LINK.finditer(prose.text):
        target, _, anchor = match.group(1).partition("#")
        if "://" in target:
            continue
        folder = pathlib.PurePosixPath(prose.path).parent
        path = (folder / target).as_posix() if target else prose.path
        parts = []
        for part in path.split("/"):
            parts = parts[:-1] if part == ".." else parts + [part]
        path = "/".join(part for part in parts if part != ".")
        if path not in tree.paths | tree.folders and path != "LICENSE":
            yield match.start(), "link", f"there is no {target}"
        elif anchor and anchor not in map(slug, tree.headings.get(path.rsplit("/", 1)[-1], ())):
            yield match.start(), "link", f"{path} has no heading #{anchor}"


def check_sections(tree: Tree, prose: Prose) -> Iterator[tuple[int, str, str]]:
    def numbered(page: str, number: str) -> bool:
        return any(re.match(rf"{re.escape(number)}\.? ", heading)
                   for heading in tree.headings.get(page, ()))
    text = re.sub(r"\s", " ", prose.text)
    for match in SECTION_OF_PAGE.finditer(text):
        if not numbered(match.group(1), match.group(2)):
            yield match.start(), "section", f"{match.group(1)} has no section {match.group(2)}"
    for match in HEADING_OF_PAGE.finditer(text):
        headings = [heading.replace("`", "") for heading in tree.headings.get(match.group(1), ())]
        named = match.group(2).replace("`", "")
        if not any(heading.split(". ", 1)[-1].startswith(named) for heading in headings):
            yield match.start(), "section", f"{match.group(1)} has no heading {match.group(2)}"
    if is_page(prose.path):
        page = prose.path.rsplit("/", 1)[-1]
        for match in SECTION_HERE.finditer(text):
            if not numbered(page, match.group(1)):
                yield match.start(), "section", f"there is no section {match.group(1)} here"
        numbers = [heading.split(" ")[0] for heading in tree.headings[page]
                   if heading[0].isdigit()]
        for number in sorted({number for number in numbers if numbers.count(number) > 1}):
            yield 0, "section", f"two sections {number}"


def check_members(tree: Tree, prose: Prose) -> Iterator[tuple[int, str, str]]:
    for match in MEMBER.finditer(prose.text):
        name, member = match.groups()
        foreign = prose.text[:match.start()].endswith(("rocksdb::", "leveldb::", "std::"))
        if foreign or name in FOREIGN_NAMES or (
                prose.path.startswith(COMPARES_WITH_ROCKSDB) and (
                    not name.endswith("Options") or not is_page(prose.path))):
            continue
        if name in tree.members:
            if not tree.has_member(name, member) and member not in tree.members:
                yield match.start(), "member", f"{name} has no {member}"
        elif name not in tree.words or member not in tree.words:
            yield match.start(), "member", f"there is no {name}::{member}"
    if not is_page(prose.path) or prose.path.startswith(COMPARES_WITH_ROCKSDB):
        return
    for match in CODE_SPAN.finditer(prose.text):
        name = IDENTIFIER.match(match.group(1))
        if name and not name.group(1).startswith("nacre_") and (
                not tree.has_identifier(name.group(1))):
            yield match.start(), "name", f"there is no {name.group(1)}"


def check_flags(tree: Tree, prose: Prose) -> Iterator[tuple[int, str, str]]:
    for match in FLAG.finditer(prose.text):
        if match.group(1) not in tree.flags:
            yield match.start(), "flag", f"no program takes --{match.group(1)}"


def check_properties(tree: Tree, prose: Prose) -> Iterator[tuple[int, str, str]]:
    for match in PROPERTY.finditer(prose.text):
        name, _, call = match.groups()
        if not (call or tree.has_property(name) or name in tree.words):
            yield match.start(), "property", f"there is no nacre.{name}"
    for match in TOKEN.finditer(prose.text):
        if match.group(1) not in tree.words | tree.quoted:
            yield match.start(), "metric", f"there is no {match.group(1)}"


def check_steps(tree: Tree, prose: Prose) -> Iterator[tuple[int, str, str]]:
    """A line of the tour that is not a step is one with a mistake in its form."""
    if prose.path != TOUR:
        return
    for match in re.finditer(r"(?m)^\d+\..*$", prose.text):
        step = STEP.match(match.group(0))
        if step is None or not step.group(3):
            yield match.start(), "tour", "a step is: `file.cc` `Function`: why"
            continue
        code = tree.sources.get(step.group(1), "")
        for name in re.findall(r"[\w:]+", step.group(2)):
            if not re.search(rf"\b{name}\(", code):
                yield match.start(), "tour", f"{step.group(1)} has no {name}"
    for part in prose.text.split("\n## ")[1:]:
        if len(re.findall(r"(?m)^\d+\.", part)) > MAX_STEPS:
            yield prose.text.index(part), "tour", f"more than {MAX_STEPS} steps"


def check_rooms(tree: Tree, prose: Prose) -> Iterator[tuple[int, str, str]]:
    """The overview lists every room of the layers that have some."""
    if prose.path != OVERVIEW:
        return
    listed = prose.text.partition("\n## 2. ")[2].partition("\n## ")[0]
    for folder in sorted(tree.folders):
        layer, _, room = folder.partition("/")
        if layer in LAYERS_WITH_ROOMS and room and "/" not in room:
            if not re.search(rf"\b{room}/", listed):
                yield prose.text.find("\n## 2. ") + 1, "room", f"section 2 does not list {folder}"


CHECKS = (check_rooms, check_steps, check_files, check_links, check_sections, check_members,
          check_flags, check_properties)


def check_tree(root: pathlib.Path) -> list[Violation]:
    tree = Tree(root)
    violations = []
    for prose in tree.prose:
        for check in CHECKS:
            if check is check_links and not is_page(prose.path):
                continue
            for offset, rule, message in check(tree, prose):
                line = prose.line + prose.text.count("\n", 0, offset)
                violations.append(Violation(prose.path, line, rule, message))
    return sorted(set(violations), key=lambda v: (v.path, v.line, v.message))


if __name__ == "__main__":
    sys.exit(run(__doc__, check_tree))
