"""The commands that a page of documentation shows, and the shape of what they print.

Commands are in fenced blocks: in those of `console` behind a prompt (`$ `, `# ` for root, with the
name of a machine before it where there are several), with what they print below; in those of `sh`
without either. All other blocks are files or output."""

import dataclasses
import pathlib
import re

# Blocks that are no commands.
OTHER_LANGUAGES = {"text", "ini", "yaml", "cpp", "cmake"}
FENCE = re.compile(r"^( *)```(.*)$")
PROMPT = re.compile(r"^(?:mn\d)?[$#] (.*)$")
HEADING = re.compile(r"^#+ (?:(\d+(?:\.\d+)*)\.? )?(.*)$")
# What may differ from one run to the next, and what looks so and is kept. An id may be all digits.
VARYING = re.compile(
    r"(?P<ID>\b(?:[0-9a-f]{16}|[0-9a-f]{8})\b(?!\.))"  # Ids.
    r"|(?P<kept>\b\d+\.\d+\.\d+\.\d+:\d+\b|\b[a-z]+\d+\b|\b(?:rep|rs)\([\d,]+\)|'[^']{2,}')"
    r"|(?P<TIME>\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?|\b[A-Z][a-z]{2} +\d+ \d\d:\d\d\b)"
    r"|(?P<KEY>\b0x[0-9A-F]+(?:\.\.\.)?|(?<= )'\w'(?= ))"
    r"|(?P<BAR>\[[#-]+\])"
    r"|(?P<SIZE>\b\d+(?:\.\d+)? (?:B|[KMGTE]iB)(?=\W|$))"
    r"|(?P<N>\b\d+(?:\.\d+)?\b)")


@dataclasses.dataclass(frozen=True)
class Command:
    section: str  # Its number, or its heading if it has none.
    line: int
    text: str
    output: tuple[str, ...]  # What the page shows below it.


def commands_of(path: pathlib.Path) -> list[Command]:
    """In the order of the page. ValueError: a block whose commands could not be told from other
    text, naming its line."""
    found: list[Command] = []
    lines = path.read_text().split("\n")
    section, number = "", 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if re.match(r"^ {4}\S", line) and lines[number - 2] == "":
            raise ValueError(f"{path.name}:{number}: an indented block, whose language is not said")
        heading = HEADING.match(line)
        # A heading without a number belongs to the section that has one.
        if heading and (heading.group(1) or not section[:1].isdigit()):
            section = heading.group(1) or heading.group(2)
        fence = FENCE.match(line)
        if not fence:
            continue
        indentation, language, first = fence.group(1), fence.group(2), number
        block = []
        while lines[number] != f"{indentation}```":
            block.append(lines[number].removeprefix(indentation))
            number += 1
        number += 1
        if language in ("console", "sh"):
            found += _commands_in(block, language, section, first + 1)
        elif language not in OTHER_LANGUAGES:
            raise ValueError(f"{path.name}:{first}: a block of the language '{language}'")
        elif language == "text" and any(each.startswith("$ ") for each in block):
            raise ValueError(f"{path.name}:{first}: a command in a block of 'text'")
    return found


def _commands_in(block: list[str], language: str, section: str, first: int) -> list[Command]:
    found: list[Command] = []
    at = 0
    while at < len(block):
        line = block[at]
        prompt = PROMPT.match(line) if language == "console" else None
        if prompt or (language == "sh" and line.strip() and not line.startswith("#")):
            start, text = at, prompt.group(1) if prompt else line
            while text.endswith("\\"):
                at += 1
                text += "\n" + block[at]
            found.append(Command(section, first + start, text, ()))
        elif language == "console" and found:
            found[-1] = dataclasses.replace(found[-1], output=(*found[-1].output, line))
        elif language == "console":
            raise ValueError(f"line {first + at}: output without a command before it")
        at += 1
    return found


def shape_of(line: str) -> str:
    """`line` without what may differ from run to run: numbers, sizes, times, ids, and how wide
    columns are."""
    def placeholder(match: re.Match) -> str:
        kind = match.lastgroup
        return match.group(0) if kind == "kept" else "<N>" if kind == "ID" else f"<{kind}>"
    varied = VARYING.sub(placeholder, line)
    return " ".join(varied.split())


def shapes_of(lines) -> list[str]:
    """Lines of one shape that follow one another count once, since there may be more of them."""
    shapes: list[str] = []
    for line in lines:
        shape = shape_of(line)
        if shape and (not shapes or shapes[-1] != shape):
            shapes.append(shape)
    return shapes


def _fits(shown: str, printed: str) -> bool:
    if shown.endswith(" ..."):
        return printed.startswith(shown.removesuffix("..."))
    return shown == printed


def difference(shown, printed) -> str:
    """Empty if what was printed looks as it is shown; else says how it does not."""
    expected, actual = shapes_of(shown), shapes_of(printed)
    if len(expected) == len(actual) and all(map(_fits, expected, actual)):
        return ""
    for at, shape in enumerate(expected):
        if at >= len(actual) or not _fits(shape, actual[at]):
            is_there = actual[at] if at < len(actual) else "(nothing more)"
            return f"the page shows  {shape}\nthe command has {is_there}"
    return f"the page does not show {actual[len(expected)]}"
