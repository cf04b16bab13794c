"""Pictures: how many times better Nacre is, against each target; and the loss of a node over time.
"""

import textwrap

import matplotlib

matplotlib.use("Agg")  # No display is needed.
from matplotlib import pyplot  # noqa: E402

import repair  # noqa: E402
from table import RAW_READ, RowResult, format_number  # noqa: E402
from workload import LMDB, NACRE  # noqa: E402

HEADLINE = ("fillrandom", "readrandom after compaction", "readseq")
HEADLINE_FILE = "headline.png"  # Beside the page.
MET, MISSED, NO_TARGET = "#2a7f62", "#c0392b", "#8a8f98"


def write_plot(results: list[RowResult], title: str, path: str) -> None:
    """One bar a row that has a ratio; log scale, a line at 1, a mark at the target."""
    shown = [result for result in results if result.ratio() is not None][::-1]
    figure, axes = pyplot.subplots(figsize=(9, 1.6 + 0.33 * len(shown)))
    for y, result in enumerate(shown):
        color = {True: MET, False: MISSED, None: NO_TARGET}[result.met()]
        axes.barh(y, result.ratio() - 1, left=1, height=0.62, color=color)
        if result.row.target is not None:
            axes.plot([result.row.target] * 2, [y - 0.42, y + 0.42], color="black", linewidth=1.6)
        axes.text(max(result.ratio(), result.row.target or 0, 1) * 1.05, y,
                  f"{result.ratio():.2f}  ({format_number(result.median(NACRE))} "
                  f"{result.row.unit})", va="center", fontsize=8)
    axes.set_yticks(range(len(shown)), [result.row.title for result in shown], fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    ratios = [result.ratio() for result in shown] + [result.row.target or 1 for result in shown]
    axes.set_xlim(min(0.5, *ratios, 1) * 0.8, max(1, *ratios, 1) * 2.2)
    peers = "RocksDB in its better profile"
    if any(RAW_READ in result.values for result in shown):
        peers += " (Get: the raw read)"
    if any(LMDB in result.row.peers for result in shown):
        peers += ", or than LMDB"
    axes.set_xlabel(f"times better than {peers}; black marks: targets", fontsize=8)
    axes.set_ylim(-0.7, len(shown) - 0.3)
    axes.tick_params(axis="x", labelsize=8)
    figure.suptitle(textwrap.fill(title, 130), x=0.01, ha="left", fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def write_headline(results: list[RowResult], path: str) -> None:
    """The rows of HEADLINE, for the first page: Nacre's rate above that of the better profile."""
    shown = [next((result for result in results if result.row.title == name), None)
             for name in HEADLINE]
    shown = [result for result in shown if result and result.ratio() is not None]
    figure, columns = pyplot.subplots(1, max(1, len(shown)), figsize=(9, 1.7), squeeze=False)
    for axes, result in zip(columns[0], shown):
        for y, (engine, color) in enumerate(((result.best_peer(), NO_TARGET), (NACRE, MET))):
            axes.barh(y, result.median(engine), height=0.7, color=color)
            axes.text(result.median(engine) * 1.03, y, format_number(result.median(engine)),
                      va="center", fontsize=9)
        axes.set_title(f"{result.row.name}: {result.ratio():.1f} x", fontsize=9, loc="left")
        axes.set_yticks((0, 1), ("RocksDB", "Nacre"), fontsize=9)
        axes.set_xlim(0, result.median(NACRE) * 1.3)
        axes.set_xticks(())
        for side in ("top", "right", "bottom"):
            axes.spines[side].set_visible(False)
    figure.supxlabel("operations a second", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def write_takeovers(takeovers: dict[str, dict], title: str, path: str) -> None:
    """A line of bars each: the steps of opening, and when the first Get and Put were done."""
    figure, axes = pyplot.subplots(figsize=(9, 1.6 + 0.6 * len(takeovers)))
    colors = pyplot.get_cmap("tab10")
    for y, takeover in enumerate(list(takeovers.values())[::-1]):
        steps = {name: micros / 1000 for name, micros in takeover["steps"].items()
                 if name != "total"}
        left = 0.0
        for number, (name, millis) in enumerate(steps.items()):
            # One label of each step is enough.
            axes.barh(y, millis, left=left, height=0.5, color=colors(number % 10),
                      label=name if y == 0 else None)
            left += millis
        for what, color in (("get", MET), ("put", MISSED)):
            axes.plot([takeover[f"first_{what}_us"] / 1000] * 2, [y - 0.4, y + 0.4], color=color,
                      linewidth=1.6, label=f"first {what.capitalize()}" if y == 0 else None)
    axes.set_yticks(range(len(takeovers)), list(takeovers)[::-1], fontsize=8)
    axes.set_xlabel("milliseconds since before the pool was connected to", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.legend(fontsize=7, frameon=False, ncol=6, loc="lower center", bbox_to_anchor=(0.5, 1))
    figure.suptitle(title, x=0.01, ha="left", fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def write_tails(longest: dict[str, dict[str, float]], title: str, path: str) -> None:
    """Of each run, the milliseconds that the longest operation of each kind took; log scale."""
    figure, axes = pyplot.subplots(figsize=(9, 1.4 + 0.42 * len(longest)))
    for y, (name, operations) in enumerate(list(longest.items())[::-1]):
        color = NO_TARGET if name.endswith(" before") else MET
        for offset, (operation, millis), alpha in zip((0.2, -0.2), operations.items(), (1, 0.55)):
            axes.barh(y + offset, millis, height=0.36, color=color, alpha=alpha)
            axes.text(millis * 1.08, y + offset, f"{operation} {format_number(millis)}",
                      va="center", fontsize=7)
    axes.set_yticks(range(len(longest)), list(longest)[::-1], fontsize=8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axes.set_xlim(right=3 * max(max(each.values()) for each in longest.values()))
    axes.set_xlabel("milliseconds of the longest operation", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    figure.suptitle(title, x=0.01, ha="left", fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def write_timeline(timeline: repair.Timeline, title: str, path: str) -> None:
    """Throughput, and below it latencies on a log scale; the rebuild is shaded."""
    # What is left at the end is too short to tell anything.
    intervals = [interval for interval in timeline.before + timeline.after
                 if interval.end - interval.start > repair.INTERVAL_SECONDS / 2]
    middles = [(interval.start + interval.end) / 2 for interval in intervals]
    figure, (rates, latencies) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 5))
    rates.plot(middles, [interval.ops_per_sec / 1000 for interval in intervals], color=MET)
    rates.set_ylabel("thousand operations a second", fontsize=8)
    rates.set_ylim(0, None)
    latencies.plot(middles, [interval.p99_us for interval in intervals], color=MET, label="p99")
    latencies.plot(middles, [interval.max_us for interval in intervals], color=NO_TARGET,
                   label="longest", linewidth=1)
    latencies.set_yscale("log")
    latencies.set_ylabel("microseconds", fontsize=8)
    latencies.set_xlabel(f"seconds; each point {repair.INTERVAL_SECONDS} s", fontsize=8)
    for axes in (rates, latencies):
        axes.axvspan(repair.KILL_AT_SECONDS, timeline.rebuild_end(), color=NO_TARGET, alpha=0.25,
                     linewidth=0, label="rebuild")
        axes.axvline(repair.KILL_AT_SECONDS, color=MISSED, linewidth=1.2, label="a node is killed")
        axes.tick_params(labelsize=8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    latencies.legend(fontsize=8, frameon=False, ncol=4, loc="lower center",
                     bbox_to_anchor=(0.5, 1))
    figure.suptitle(title, x=0.01, ha="left", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
