#!/usr/bin/env python3
"""Measures the figures of the papers (docs/evaluation.md) on a cluster.

Starts nacre-memnode on the memory hosts of a hosts file and db_bench on its compute hosts, gathers
what they measured, and ends everything, also when it fails. ops/cluster_bench/hosts.py says what a
hosts file has.
"""

import argparse
import pathlib
import shutil
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "db_bench" / "compare"))
import machine  # noqa: E402
from cluster_lab import BINARIES, Cluster, ClusterLab, NotHere  # noqa: E402
from compare import Progress, positive, run_tool  # noqa: E402
from hosts import read_hosts  # noqa: E402
from measure import end_all  # noqa: E402
from papers import sheet  # noqa: E402
from papers.figures import Paper  # noqa: E402
from shells import Shell  # noqa: E402
from workload import CompareError  # noqa: E402

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 {host}"


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    class Parser(argparse.ArgumentParser):
        def error(self, message: str):
            raise CompareError(message)

    parser = Parser(prog="cluster_bench.py", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=pathlib.Path, required=True, help="the hosts file")
    parser.add_argument("--shell", default=SSH, metavar="COMMAND",
                        help="runs words on {host} (default: %(default)s)")
    parser.add_argument("--transport", default="tcp", choices=("tcp", "verbs"),
                        help="default: %(default)s")
    parser.add_argument("--bin", default="/usr/local/bin", metavar="FOLDER",
                        help="folder of the binaries on every host (default: %(default)s)")
    parser.add_argument("--copy", type=pathlib.Path, metavar="FOLDER",
                        help="instead: copy the binaries of this folder here to every host")
    parser.add_argument("--paper", default="all", choices=(*sheet.PAPERS, "all"),
                        help="default: %(default)s")
    parser.add_argument("--figure", default="", metavar="NUMBER,...", help="these figures alone")
    parser.add_argument("--rounds", type=positive, default=sheet.ROUNDS,
                        help="default: %(default)s")
    parser.add_argument("--num", type=positive, default=1_000_000,
                        help="keys; a figure has four tenths of them (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the keys")
    parser.add_argument("--no-plot", action="store_true", help="without pictures")
    parser.add_argument("--out", type=pathlib.Path, default="build/cluster",
                        help="folder of what is written (default: %(default)s)")
    options = parser.parse_args(arguments)
    options.update_docs, options.again, options.remark = False, True, ""
    return options


def measure_figures(options: argparse.Namespace, paper: Paper, lab: ClusterLab, shelf: sheet.Shelf,
                    progress: Progress) -> None:
    hosts = lab.cluster.hosts
    about = {"machine": lab.cluster.describe() | machine.describe_tree(),
             "settings": shelf.settings, "warnings": [],
             "remark": f"{len(hosts.compute)} compute and {len(hosts.memory)} memory hosts over "
                       f"{options.transport}"}
    for figure in paper.select(options.figure):
        began = time.monotonic()
        try:
            result = sheet.measure(figure, lab, options.rounds)
        except NotHere as reason:
            progress.line(f"{paper.key} {figure.name}: not on a cluster: {reason}")
            continue
        result.about = about
        shelf.put(paper, figure, result)
        progress.line(f"{paper.key} {figure.name}: {figure.title}   "
                      f"ok {time.monotonic() - began:5.0f} s")


def check(options: argparse.Namespace, papers: list[Paper]) -> None:
    sheet.check(options, papers)
    for binary in BINARIES:
        if options.copy is not None and not (options.copy / binary).exists():
            raise CompareError(f"there is no {options.copy / binary}")


def run(arguments: list[str]) -> None:
    options = parse_arguments(arguments)
    papers = [sheet.paper_of(key)
              for key in (sheet.PAPERS if options.paper == "all" else (options.paper,))]
    check(options, papers)
    cluster = Cluster(read_hosts(options.hosts), Shell(options.shell), options.transport,
                      options.bin)
    keys = sheet.keys_of(options)
    shelf = sheet.Shelf(options.out,
                        {"keys": keys, "rounds": options.rounds, "started": time.time()})
    progress = Progress(1)
    try:
        cluster.open(options.copy)
        for paper in papers:
            runs = options.out / f"{paper.key}-runs"
            shutil.rmtree(runs, ignore_errors=True)
            runs.mkdir(parents=True)
            measure_figures(options, paper, ClusterLab(cluster, runs, keys, progress.show), shelf,
                            progress)
            files = sheet.write_outputs(options, paper, shelf)
            progress.line(f"{paper.title}: written: " + ", ".join(map(str, files)))
    finally:
        progress.clear()
        end_all()
        cluster.close()


if __name__ == "__main__":
    sys.exit(run_tool("cluster_bench", run))
