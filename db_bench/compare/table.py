"""From measured values to the table: medians, ratios, Markdown."""

import statistics
import textwrap
from dataclasses import dataclass, field
from typing import Optional

from workload import ENGINES, NACRE, Row

# The peer of the row that compares Get with one read of the transport.
RAW_READ = "raw read"


@dataclass
class RowResult:
    """Values of one row, one a round, by engine (or RAW_READ)."""
    row: Row
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, engine: str, value: Optional[float]) -> None:
        """None: the engine did nothing of the kind in this round."""
        if value is not None:
            self.values.setdefault(engine, []).append(value)

    def median(self, engine: str) -> Optional[float]:
        values = self.values.get(engine)
        return statistics.median(values) if values else None

    def best_peer(self) -> Optional[str]:
        """The best one of those that Nacre is compared with, by its median."""
        peers = [engine for engine in self.values if engine in (*self.row.peers, RAW_READ)]
        choose = min if self.row.lower_is_better else max
        return choose(peers, key=self.median, default=None)

    def ratio(self) -> Optional[float]:
        """How many times better Nacre is than its best peer, also where lower is better."""
        nacre, peer = self.median(NACRE), self.best_peer()
        if nacre is None or peer is None or self.row.absolute:
            return None
        other = self.median(peer)
        worse, better = (nacre, other) if self.row.lower_is_better else (other, nacre)
        return better / worse if worse > 0 else None

    def met(self) -> Optional[bool]:
        """None without a target, or without numbers."""
        if self.row.target is None:
            return None
        if self.row.absolute:
            nacre = self.median(NACRE)
            return None if nacre is None else nacre <= self.row.target
        ratio = self.ratio()
        return None if ratio is None else ratio >= self.row.target

    def to_json(self) -> dict:
        row = self.row
        return {
            "name": row.name, "threads": row.threads, "unit": row.unit,
            "lower_is_better": row.lower_is_better, "target": row.target,
            "target_is_absolute": row.absolute, "values": self.values,
            "medians": {engine: self.median(engine) for engine in self.values},
            "best_peer": self.best_peer(), "ratio": self.ratio(), "met": self.met(),
        }


def format_number(value: Optional[float]) -> str:
    """Three digits, thousands and millions as such."""
    if value is None:
        return "-"
    for limit, divisor, suffix in ((999.5e3, 1e6, " M"), (9995, 1e3, " k")):
        if abs(value) >= limit:
            return f"{value / divisor:.3g}{suffix}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def format_target(row: Row) -> str:
    if row.target is None:
        return "-"
    if row.absolute:
        return f"<= {row.target:g} {row.unit}"
    return f">= {row.target:g}"


def wrap_prose(text: str) -> str:
    """Markdown whose paragraphs have lines of at most 120 columns, as all pages have."""
    return "\n".join(textwrap.fill(line, 118, break_long_words=False, break_on_hyphens=False)
                     if len(line) > 120 and not line.startswith("|") else line
                     for line in text.split("\n"))


HEADINGS = ("benchmark", "threads", "unit") + ENGINES + ("ratio", "target", "met")


def table_cells(results: list[RowResult]) -> list[list[str]]:
    cells = []
    for result in results:
        row, ratio, met = result.row, result.ratio(), result.met()
        name = row.name
        raw = result.median(RAW_READ)
        if raw is not None:
            name += f" ({format_number(raw)})"
        cells.append(
            [name, str(row.threads), row.unit]
            + [format_number(result.median(engine)) for engine in ENGINES]
            + ["-" if ratio is None else f"{ratio:.2f}", format_target(row),
               {None: "-", True: "yes", False: "no"}[met]])
    return cells


def markdown_table(results: list[RowResult]) -> str:
    lines = ["| " + " | ".join(HEADINGS) + " |", "|---" * len(HEADINGS) + "|"]
    lines += ["| " + " | ".join(cells) + " |" for cells in table_cells(results)]
    return "\n".join(lines) + "\n"


def text_table(results: list[RowResult]) -> str:
    rows = [list(HEADINGS)] + table_cells(results)
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) if i in (0, 2) else cell.rjust(width)
                  for i, (cell, width) in enumerate(zip(cells, widths))).rstrip()
        for cells in rows) + "\n"


def summary(results: list[RowResult]) -> str:
    with_target = [result for result in results if result.row.target is not None]
    met = sum(result.met() is True for result in with_target)
    return f"{met} of {len(with_target)} targets met"
