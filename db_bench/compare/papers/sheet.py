"""Measures the figures of papers, keeps what came out, draws it, and writes the page about it.

What a figure gave is kept as JSON with what decided it (sizes, rounds, binaries), and is measured
again if any of that is another, if the figure is asked for by its number, or with --again.
"""

import argparse
import dataclasses
import importlib
import importlib.util
import json
import pathlib
import re
import shutil
import tempfile
import time
from typing import Callable, Optional

import machine
from measure import DB_BENCH, end_all, engine_of, peers_in
from papers.figures import Figure, Paper, Result, markdown_figure, picture_name
from papers.lab import Lab
from table import wrap_prose
from workload import CompareError

PAPERS = ("dlsm", "aceso", "fusee", "swarm", "microec")
# Of --num: a figure runs up to twenty processes, not one.
SHARE, QUICK_SHARE = 0.4, 0.02
ROUNDS = 3
BINARIES = (DB_BENCH, "nacre-memnode", "nacre-perf")


def paper_of(key: str) -> Paper:
    return importlib.import_module(f"papers.{key}").PAPER


def keys_of(options: argparse.Namespace) -> int:
    return max(1000, int(options.num * (QUICK_SHARE if options.quick else SHARE)))


def settings_of(options: argparse.Namespace) -> dict:
    """What decides the values of a figure, but for the machine and its neighbours."""
    binaries = {}
    for name in BINARIES:
        path = options.bin / name
        if not path.exists():
            raise CompareError(f"there is no {path}")
        binaries[name] = [path.stat().st_size, path.stat().st_mtime_ns]
    return {"keys": keys_of(options), "rounds": options.rounds, "binaries": binaries}


class Shelf:
    """The folder where results are kept."""

    def __init__(self, folder: pathlib.Path, settings: dict):
        self.folder = folder
        self.settings = settings

    def path(self, paper: Paper, figure: Figure) -> pathlib.Path:
        return self.folder / f"{paper.key}-{figure.number}.json"

    def get(self, paper: Paper, figure: Figure) -> Optional[Result]:
        """None if there is none, or none of these settings."""
        try:
            kept = json.loads(self.path(paper, figure).read_text())
            same = kept["about"]["settings"] == self.settings
            return Result(kept["values"], kept["about"]) if same else None
        except (OSError, ValueError, KeyError):
            return None

    def put(self, paper: Paper, figure: Figure, result: Result) -> None:
        path = self.path(paper, figure)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(dataclasses.asdict(result), indent=1) + "\n")
        part.replace(path)


def measure(figure: Figure, lab: Lab, rounds: int) -> Result:
    """All rounds of a figure."""
    result = Result()
    for lab.round in range(1, rounds + 1):
        for series, x, value in figure.measure(lab):
            result.add(series, x, value)
    return result


def measure_paper(options: argparse.Namespace, paper: Paper, lab: Lab, shelf: Shelf,
                  tree: dict[str, str], line: Callable) -> None:
    """Those of its figures that are asked for and not known; none with --known. `tree`: what is
    measured, and when, as it was before pages were written."""
    if options.known:
        return
    for figure in paper.select(options.figure):
        if not (options.figure or options.again) and shelf.get(paper, figure):
            line(f"{paper.key} {figure.name}: kept")
            continue
        began = time.monotonic()
        result = measure(figure, lab, options.rounds)
        warnings = {engine_of(path)["warning"] for path in lab.runs.glob("*.json")} - {""}
        result.about = {"machine": machine.describe(peers_in(lab.runs)) | tree,
                        "settings": shelf.settings, "remark": options.remark,
                        "warnings": sorted(warnings)}
        shelf.put(paper, figure, result)
        line(f"{paper.key} {figure.name}: {figure.title}   ok {time.monotonic() - began:5.0f} s")


def markdown_paper(paper: Paper, results: dict[str, Result], page: str = "") -> str:
    """What stands between the marks. `results`: by the figures' numbers. What they lack is as it
    was on the page."""
    old = {section.partition(":")[0]: section
           for section in re.split(r"(?m)^(?=### )", page)[1:]}
    text = wrap_prose(f"The paper: {paper.setup}\n\nHere: {paper.here}\n")
    for figure in paper.figures:
        section = markdown_figure(paper, figure, results.get(figure.number))
        if figure.measure is not None and figure.number not in results:
            section = old.get(section.partition(":")[0], section)
        text += f"\n{section.strip()}\n"
    return text


def marks(paper: Paper) -> tuple[str, str]:
    return (f"<!-- ./run compare --paper={paper.key} --update-docs writes what is between these: "
            "begin -->", f"<!-- {paper.key} end -->")


def split_page(page: str, paper: Paper) -> tuple[str, str, str]:
    """What stands before the paper's part, the part, and what is behind it."""
    before, begin, rest = page.partition(marks(paper)[0])
    part, finish, after = rest.partition(marks(paper)[1])
    if not begin or not finish:
        raise CompareError(f"the page has no place for {paper.key}: '{marks(paper)[0]}' and "
                           f"'{marks(paper)[1]}'")
    return before + begin, part, finish + after


def write_outputs(options: argparse.Namespace, paper: Paper, shelf: Shelf) -> list[pathlib.Path]:
    """Text, pictures and, if asked for, the page; the files that it wrote."""
    results = {figure.number: result for figure in paper.figures
               if (result := shelf.get(paper, figure)) is not None}
    text = markdown_paper(paper, results)
    files = [shelf.folder / f"{paper.key}.md"]
    files[0].write_text(text)
    if not options.no_plot:
        from papers import plots  # Takes a while to load, and needs matplotlib.
        for figure in paper.figures:
            if figure.number in results:
                files.append(shelf.folder / picture_name(paper, figure))
                plots.draw(paper, figure, results[figure.number], str(files[-1]))
    if options.update_docs:
        before, part, after = split_page(options.page.read_text(), paper)
        text = markdown_paper(paper, results, part)
        options.page.write_text(f"{before}\n\n{text}\n{after}")
        for figure in paper.figures:
            if figure.in_docs and figure.number in results:
                shutil.copy(shelf.folder / picture_name(paper, figure), options.page.parent)
        files.append(options.page)
    return files


def check(options: argparse.Namespace, papers: list[Paper]) -> None:
    """Better now than after all is measured."""
    if options.figure and len(papers) != 1:
        raise CompareError("--figure is of one --paper")
    if options.update_docs and options.no_plot:
        raise CompareError("--update-docs wants the plots too: without --no-plot")
    if not options.no_plot and importlib.util.find_spec("matplotlib") is None:
        raise CompareError("the plots need matplotlib (Debian: python3-matplotlib); or --no-plot")
    for paper in papers:
        paper.select(options.figure)
        if options.update_docs:
            split_page(options.page.read_text(), paper)


def run(options: argparse.Namespace, progress_of: Callable) -> None:
    """`progress_of`: makes the line that says what runs."""
    papers = [paper_of(key) for key in (PAPERS if options.paper == "all" else (options.paper,))]
    check(options, papers)
    shelf = Shelf(options.out / "papers", settings_of(options))
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="nacre-compare-", dir="/dev/shm"))
    progress, tree = progress_of(1), machine.describe_tree()
    try:
        for paper in papers:
            runs = shelf.folder / f"{paper.key}-runs"
            shutil.rmtree(runs, ignore_errors=True)
            runs.mkdir(parents=True)
            lab = Lab(options.bin, scratch, runs, keys_of(options), progress.show)
            measure_paper(options, paper, lab, shelf, tree, progress.line)
            files = write_outputs(options, paper, shelf)
            progress.line(f"{paper.title}: written: " + ", ".join(map(str, files)))
    finally:
        progress.clear()
        end_all()
        shutil.rmtree(scratch, ignore_errors=True)
