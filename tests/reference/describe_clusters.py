#!/usr/bin/env python3
"""Regenerates describe_clusters.json, what a test of `describe` with `cluster` compares with.

    python3 tests/reference/describe_clusters.py

The pinned peer is installed into a virtual environment at first use (`in_venv`, harness.py). A mean
with a cluster-robust interval is a regression on a constant: statsmodels' OLS with
`cov_type="cluster"` and `use_t`. The rows are in the file: seeded, clusters of unequal size, a
group of two clusters, and absent values.
"""

import json
import pathlib
import random
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))
from harness import in_venv, pinned  # noqa: E402

in_venv(*pinned({"statsmodels": "0.14.5", "scipy": "1.16.3", "numpy": "2.4.6", "pandas": "2.3.3"}))

import numpy  # noqa: E402
import statsmodels.api as sm  # noqa: E402

ALPHA = 0.1


def rows():
    """id, group, cluster, x (around 1e6, so that cancellation shows) and y (some are absent)."""
    draw = random.Random(20)
    for at in range(60):
        group = "a" if at < 44 else "b"
        cluster = f"{group}{int(draw.random() ** 2 * (9 if group == 'a' else 2))}"
        shift = sum(map(ord, cluster))
        x = round(1e6 + shift + draw.gauss(0, 3), 3)
        y = "" if draw.random() < 0.15 else round(draw.random() + shift % 3, 4)
        yield at, group, cluster, x, y


def expected(table):
    for group in ("a", "b"):
        for place, column in ((3, "x"), (4, "y")):
            of = [row for row in table if row[1] == group and row[place] != ""]
            values = numpy.array([row[place] for row in of], dtype=float)
            codes = numpy.unique([row[2] for row in of], return_inverse=True)[1]
            fit = sm.OLS(values, numpy.ones_like(values)).fit(
                cov_type="cluster", cov_kwds={"groups": codes}, use_t=True
            )
            low, high = fit.conf_int(ALPHA)[0]
            yield {
                "group": group,
                "column": column,
                "n_clusters": int(codes.max()) + 1,
                "mean": float(fit.params[0]),
                "standard_error": float(fit.bse[0]),
                "ci_low": float(low),
                "ci_high": float(high),
            }


table = list(rows())
text = "id,g,repo,x,y\n" + "".join(",".join(map(str, row)) + "\n" for row in table)
found = {"alpha": ALPHA, "csv": text, "expected": list(expected(table))}
(HERE / "describe_clusters.json").write_text(json.dumps(found, indent=1) + "\n")
