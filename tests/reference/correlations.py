#!/usr/bin/env python3
"""Regenerates correlations.json, what the tests of src/causal/correlation compare with.

    python3 tests/reference/correlations.py

The pinned peer is installed into a virtual environment at first use (`in_venv`, harness.py).
Every entry names a file of tests/reference/causal, the number of its first rows that are used, two
columns and a method. `low` and `high` are scipy's interval at 95 % (Pearson only); partial
correlations are those of the least squares residuals given the columns in `given`, with Student's
t (n - 2 - k). Clustered ones, where row i is of cluster i % clusters, have the jackknife on
Fisher's scale, without each cluster (each 200th of them if there are more), and Student's t.
"""

import csv
import itertools
import json
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))
from harness import in_venv, pinned  # noqa: E402

PINS = {"scipy": "1.16.3", "numpy": "2.4.6"}
in_venv(*pinned(PINS))

import numpy  # noqa: E402
import scipy  # noqa: E402
from scipy import stats  # noqa: E402

COLUMNS = {
    "card_iv.csv": "nearc4 educ black smsa south married exper lwage".split(),
    "formula_splitmix42.csv": "t y x1 x2 x3 x4".split(),
    "ihdp_A_seed0.csv": "t y x1 x2 x3 x5 x7 x10".split(),
    "nhefs.csv": "qsmk wt82_71 sex age smokeintensity smokeyrs wt71 age_sq".split(),
    "nsw_dw.csv": "treat age educ black marr nodegree re74 re75 re78".split(),
}
HEADS = {"formula_splitmix42.csv": [3, 4, 5, 8, 12, 33, 34, 60], "nsw_dw.csv": [6, 10, 40]}
PARTIAL = [
    ("nhefs.csv", "qsmk", "wt82_71", ["sex", "age", "smokeintensity", "smokeyrs", "wt71"]),
    ("nhefs.csv", "age", "smokeyrs", ["sex"]),
    ("nhefs.csv", "smokeintensity", "wt82_71", ["age", "age_sq", "wt71", "wt71_sq"]),
    ("nsw_dw.csv", "treat", "re78", ["age", "educ", "black", "hisp", "marr", "re74", "re75"]),
    ("card_iv.csv", "educ", "lwage", ["exper", "black", "south", "smsa"]),
    ("formula_splitmix42.csv", "t", "y", ["x1", "x2", "x3", "x4"]),
    ("ihdp_A_seed0.csv", "y", "x2", ["x1", "x3", "t"]),
]


CLUSTERED = [
    ("nsw_dw.csv", 445, "age", "educ", 15),
    ("nsw_dw.csv", 445, "re74", "re78", 37),
    ("nhefs.csv", 600, "age", "smokeyrs", 250),
    ("ihdp_A_seed0.csv", 100, "y", "x2", 6),
]
METHODS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def clustered(x, y, clusters, method, alpha=0.05):
    codes = numpy.arange(len(x)) % clusters
    parts = min(clusters, 200)
    score = lambda rows: numpy.arctanh(METHODS[method](x[rows], y[rows]).statistic)  # noqa: E731
    left = numpy.array([score(codes % parts != part) for part in range(parts)])
    centre = score(codes >= 0)
    error = numpy.sqrt((parts - 1) / parts * ((left - left.mean()) ** 2).sum())
    half = stats.t.ppf(1 - alpha / 2, parts - 1) * error
    return dict(
        r=float(numpy.tanh(centre)),
        p=float(2 * stats.t.sf(abs(centre) / error, parts - 1)),
        low=float(numpy.tanh(centre - half)),
        high=float(numpy.tanh(centre + half)),
    )


def columns_of(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: numpy.array([float(row[name]) for row in rows]) for name in rows[0]}


def main():
    tables = {name: columns_of(HERE / "causal" / name) for name in COLUMNS}
    entries = []
    for file, names in COLUMNS.items():
        table = tables[file]
        rows_of = [len(table[names[0]]), *HEADS.get(file, [])]
        for rows, (a, b) in itertools.product(rows_of, itertools.combinations(names, 2)):
            x, y = table[a][:rows], table[b][:rows]
            if min(len(set(x)), len(set(y))) < 2:
                continue
            for method in METHODS:
                result = METHODS[method](x, y)
                entry = dict(
                    file=file,
                    rows=rows,
                    x=a,
                    y=b,
                    method=method,
                    r=float(result.statistic),
                    p=float(result.pvalue),
                )
                if method == "pearson" and rows >= 4:
                    interval = result.confidence_interval(0.95)
                    entry |= dict(low=float(interval.low), high=float(interval.high))
                entries.append(entry)
    partial = []
    for file, a, b, given in PARTIAL:
        table = tables[file]
        rows = len(table[a])
        design = numpy.column_stack([numpy.ones(rows), *(table[name] for name in given)])
        design /= numpy.sqrt((design**2).sum(0))
        rest = [
            c - design @ numpy.linalg.lstsq(design, c, rcond=None)[0] for c in (table[a], table[b])
        ]
        r = float(rest[0] @ rest[1] / numpy.sqrt((rest[0] @ rest[0]) * (rest[1] @ rest[1])))
        degrees = rows - 2 - len(given)
        t = r * numpy.sqrt(degrees / ((1 - r) * (1 + r)))
        partial.append(
            dict(file=file, x=a, y=b, given=given, r=r, p=float(2 * stats.t.sf(abs(t), degrees)))
        )
    in_clusters = [
        dict(file=file, rows=rows, x=a, y=b, clusters=clusters, method=method)
        | clustered(tables[file][a][:rows], tables[file][b][:rows], clusters, method)
        for file, rows, a, b, clusters in CLUSTERED
        for method in METHODS
    ]
    # scipy's coefficient of a perfect order of ranks may miss 1 by a rounding error, which makes
    # a p-value of it that is not zero: such an entry is written as what it is.
    for entry in entries:
        if entry["method"] == "spearman" and abs(entry["r"]) > 1 - 1e-15:
            entry |= dict(r=float(numpy.sign(entry["r"])), p=0.0)
    lines = ["{", f' "scipy": "{scipy.__version__}", "numpy": "{numpy.__version__}",']
    sections = (("pairs", entries, ","), ("partial", partial, ","), ("clustered", in_clusters, ""))
    for key, items, end in sections:
        lines.append(f' "{key}": [')
        lines.append(",\n".join("  " + json.dumps(item) for item in items))
        lines.append(f" ]{end}")
    (HERE / "correlations.json").write_text("\n".join([*lines, "}"]) + "\n")


if __name__ == "__main__":
    main()
