"""A picture of a figure's medians."""

import textwrap

import matplotlib

matplotlib.use("Agg")  # No display is needed.
from matplotlib import pyplot  # noqa: E402

import machine  # noqa: E402
from papers.figures import BARS, Figure, Paper, Result  # noqa: E402

# What differs more than so many times needs a logarithmic axis.
LOGARITHMIC_FROM = 30


def draw(paper: Paper, figure: Figure, result: Result, path: str) -> None:
    """Lines over the columns, or groups of bars."""
    picture, axes = pyplot.subplots(figsize=(6, 3.4))
    columns = result.columns()
    width = 0.8 / len(result.values)
    for i, series in enumerate(result.values):
        points = [(at, result.median(series, x)) for at, x in enumerate(columns)
                  if result.median(series, x) is not None]
        places, heights = zip(*points)
        if figure.kind == BARS:
            axes.bar([at - 0.4 + width * (i + 0.5) for at in places], heights, width, label=series)
        else:
            axes.plot(places, heights, marker="o", markersize=3, linewidth=1.2, label=series)
    values = [result.median(series, x) for series in result.values for x in columns]
    positive = [value for value in values if value is not None and value > 0]
    if positive and max(positive) > LOGARITHMIC_FROM * min(positive):
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, None)
    axes.set_xticks(range(len(columns)), columns, fontsize=7)
    axes.set_xlabel(figure.x, fontsize=8)
    axes.set_ylabel(figure.unit, fontsize=8)
    axes.tick_params(axis="y", labelsize=7)
    axes.legend(fontsize=6, frameon=False)
    axes.set_title(f"{paper.title}, {figure.name}: {figure.title}", fontsize=8, loc="left")
    picture.text(0.01, 0.01, textwrap.fill(machine.sentence(result.about["machine"]), 150),
                 fontsize=4.5, color="gray")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    picture.tight_layout(rect=(0, 0.04, 1, 1))
    picture.savefig(path, dpi=110)
    pyplot.close(picture)
