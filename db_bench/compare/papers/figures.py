"""The figures of a paper: what each showed, how Nacre is measured, and what came out.

A figure's function runs once in each round and yields (series, x, value); a cell of its table is
the median over the rounds.
"""

import statistics
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Optional

import machine
from table import format_number, wrap_prose
from workload import CompareError

LINES, BARS = "lines", "bars"
Measure = Callable[[Any], Iterator[tuple[str, Any, float]]]


@dataclass(frozen=True)
class Figure:
    number: str  # As in the paper: "7a"; "T2" is its table 2.
    title: str
    showed: str  # What the paper measured.
    here: str  # What is measured here and how, or why nothing is.
    x: str = ""  # What the columns are.
    unit: str = ""  # The unit of all series, unless their names say another one.
    measure: Optional[Measure] = None
    kind: str = LINES
    in_docs: bool = False  # Its plot stands on the page.

    @property
    def name(self) -> str:
        return (f"Table {self.number[1:]}" if self.number.startswith("T")
                else f"Figure {self.number}")


@dataclass
class Result:
    """Values of a figure, one a round, by series and column."""
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    about: dict = field(default_factory=dict)  # The machine and what decides the values.

    def add(self, series: str, x: Any, value: float) -> None:
        self.values.setdefault(series, {}).setdefault(str(x), []).append(value)

    def columns(self) -> list[str]:
        """In the order of their first appearance, whichever series has them."""
        return list(dict.fromkeys(x for cells in self.values.values() for x in cells))

    def median(self, series: str, x: str) -> Optional[float]:
        values = self.values[series].get(x)
        return statistics.median(values) if values else None


@dataclass
class Paper:
    key: str  # The value of --paper.
    title: str  # With where and when it appeared.
    setup: str  # What its authors had.
    here: str  # What is the same for all figures here.
    figures: list[Figure] = field(default_factory=list)

    def figure(self, number: str, title: str, x: str, unit: str, showed: str, here: str,
               **more: Any) -> Callable[[Measure], Measure]:
        """Makes the decorated function the measurement of a figure."""
        def add(measure: Measure) -> Measure:
            self._add(Figure(number, title, showed, here, x, unit, measure, **more))
            return measure
        return add

    def without(self, number: str, title: str, showed: str, here: str) -> None:
        """A figure for which there is nothing to measure here; `here` says why."""
        self._add(Figure(number, title, showed, here))

    def _add(self, figure: Figure) -> None:
        assert all(other.number != figure.number for other in self.figures), figure.number
        self.figures.append(figure)

    def select(self, numbers: str) -> list[Figure]:
        """Those whose numbers are listed, separated by commas; all that can be measured if none
        are. Raises CompareError for a number that is none, or is of a figure without numbers."""
        measured = {figure.number: figure for figure in self.figures if figure.measure}
        wanted = [number for number in numbers.split(",") if number]
        for number in wanted:
            if number not in measured:
                raise CompareError(f"--figure={number}: of {self.key} there are "
                                   + ", ".join(measured))
        return [figure for figure in measured.values() if not wanted or figure.number in wanted]


def markdown_table(figure: Figure, result: Result) -> str:
    """A row for each series, a column for each x."""
    columns = result.columns()
    head = f"{figure.x}; {figure.unit}" if figure.unit else figure.x
    lines = [f"| {head} | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {series} | "
              + " | ".join(format_number(result.median(series, x)) for x in columns) + " |"
              for series in result.values]
    return "\n".join(lines) + "\n"


def conditions(about: dict) -> str:
    """Where, when and of how much the values are."""
    remark = f" {about['remark']};" if about["remark"] else ""
    warnings = "".join(f" Note: {warning}." for warning in about["warnings"])
    settings = about["settings"]
    return (f"{machine.sentence(about['machine'])};{remark} {settings['keys']:,} keys where "
            f"nothing else is said; medians of {settings['rounds']}.{warnings}")


def markdown_figure(paper: Paper, figure: Figure, result: Optional[Result]) -> str:
    """Its section of the page."""
    text = f"### {paper.key} {figure.name}: {figure.title}\n\n"
    text += wrap_prose(f"Paper: {figure.showed}\n\nHere: {figure.here}\n")
    if figure.measure is None:
        return text
    if result is None:
        return text + "\nNot measured yet.\n"
    text += f"\n{markdown_table(figure, result)}\n{wrap_prose(conditions(result.about))}\n"
    if figure.in_docs:
        text += f"\n![{figure.title}]({picture_name(paper, figure)})\n"
    return text


def picture_name(paper: Paper, figure: Figure) -> str:
    return f"{paper.key}-{figure.number}.png"
