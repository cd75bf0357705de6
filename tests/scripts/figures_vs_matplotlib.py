#!/usr/bin/env python3
"""Regenerates peers.json in crates/galeras-figures/tests/figures: what figures must equal.

    python3 tests/scripts/figures_vs_matplotlib.py

The pinned peers are installed into a virtual environment at first use (`in_venv`, harness.py).
Quartiles, whiskers and rows beyond are those that matplotlib draws (`boxplot_stats`), distribution
functions those of `Axes.ecdf`, bins numpy's with `bins="auto"`, densities scipy's with Scott's
bandwidth, and intervals of medians the ranks of scipy's binomial distribution. The rows are in the
file. The test draws them and reads the marks back from the SVG.
"""

import json
import pathlib
import random
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "scripts"))
from harness import in_venv, pinned  # noqa: E402

in_venv(*pinned({"matplotlib": "3.10.7", "scipy": "1.16.3", "numpy": "2.4.6"}))

import matplotlib  # noqa: E402

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy  # noqa: E402
from matplotlib.cbook import boxplot_stats  # noqa: E402
from scipy.stats import binom, gaussian_kde  # noqa: E402


def samples():
    """Rows of several shapes and sizes: skewed, with ties, with outliers, few, one."""
    draw = random.Random(21)
    yield "normal", [round(draw.gauss(50, 10), 3) for _ in range(500)]
    yield "skewed", [round(draw.lognormvariate(2, 0.8), 3) for _ in range(300)]
    yield "ties", [float(draw.randrange(7)) for _ in range(200)]
    yield "outliers", [round(draw.gauss(0, 1), 3) for _ in range(60)] + [9.5, -8.0, 30.25]
    yield "few", [3.0, 1.0, 4.0, 1.5, 9.0, 2.6]
    yield "five", [3.0, 1.0, 4.0, 1.5, 9.0]
    yield "one", [7.0]
    yield "equal", [2.5] * 12
    yield "large", [round(1e6 + draw.gauss(0, 3), 4) for _ in range(120)]


def median_interval(values):
    """The rows at the ranks whose tails have at most 2.5 % each."""
    n = len(values)
    rank = int(binom.ppf(0.025, n, 0.5))
    while rank > 0 and binom.cdf(rank - 1, n, 0.5) > 0.025:
        rank -= 1
    ordered = sorted(values)
    return [ordered[rank - 1], ordered[n - rank]] if rank > 0 else None


def expected(values):
    box = boxplot_stats(values)[0]
    counts, edges = numpy.histogram(values, bins="auto")
    figure, axes = plt.subplots()
    line = axes.ecdf(values)
    steps = [[float(x), float(y)] for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]
    plt.close(figure)
    density = None
    if len(set(values)) > 1:
        places = numpy.linspace(min(values), max(values), 101)
        found = gaussian_kde(values)(places)
        density = [[float(x), float(y)] for x, y in zip(places, found, strict=True)]
    return {
        "values": values,
        "quartiles": [float(box[k]) for k in ("q1", "med", "q3")],
        "whiskers": [float(box[k]) for k in ("whislo", "whishi")],
        "beyond": sorted(map(float, box["fliers"])),
        "median_interval": median_interval(values),
        "edges": list(map(float, edges)),
        "counts": list(map(int, counts)),
        "ecdf": steps,
        "density": density,
    }


found = {name: expected(values) for name, values in samples()}
path = ROOT / "crates" / "galeras-figures" / "tests" / "figures" / "peers.json"
path.write_text(
    json.dumps(found, indent=None, separators=(",", ":")).replace('},"', '},\n"') + "\n"
)
