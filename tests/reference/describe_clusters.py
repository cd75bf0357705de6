#!/usr/bin/env python3
"""Regenerates describe_clusters.json, what a test of `describe` with `cluster` compares with.

    python3 tests/reference/describe_clusters.py

The pinned peer is installed into a virtual environment at first use (`in_venv`, harness.py). A mean
with a cluster-robust interval is a regression on a constant: statsmodels' OLS with
`cov_type="cluster"` and `use_t`; a rate one in a binomial GLM. A rate of 1 has Wilson's interval of
as many rows as there are clusters; without clusters a rate has Wilson's interval. With `interval:
exact` the interval is Clopper and Pearson's (SciPy's beta distribution), with clusters that of the
effective number of rows (Korn and Graubard 1998). The rows are in the file: seeded, clusters of
unequal size, a group of two clusters, and absent values.
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
from scipy.stats import beta, t  # noqa: E402
from statsmodels.stats.proportion import proportion_confint  # noqa: E402

ALPHA = 0.1


def rows():
    """id, group, cluster, x (around 1e6, so that cancellation shows), y (some are absent), passed
    (always in group b) and share, a number from 0 to 1 that is mostly 1."""
    draw, again = random.Random(20), random.Random(7)
    for at in range(60):
        group = "a" if at < 44 else "b"
        cluster = f"{group}{int(draw.random() ** 2 * (9 if group == 'a' else 2))}"
        shift = sum(map(ord, cluster))
        x = round(1e6 + shift + draw.gauss(0, 3), 3)
        y = "" if draw.random() < 0.15 else round(draw.random() + shift % 3, 4)
        passed = int(group == "b" or again.random() > 0.3 * (shift % 3 == 1))
        share = 1 if again.random() > 0.15 else round(again.random(), 2)
        yield at, group, cluster, x, y, passed, share


def expit(z):
    return float(1 / (1 + numpy.exp(-z)))


def exact(mean, n):
    """Clopper and Pearson's interval of a mean of n rows, which need not be whole."""
    yes, no = mean * n, (1 - mean) * n
    low = beta.ppf(ALPHA / 2, yes, no + 1) if mean > 0 else 0
    high = beta.ppf(1 - ALPHA / 2, yes + 1, no) if mean < 1 else 1
    return float(low), float(high)


def effective(mean, error, n, clusters):
    """The number of independent rows with this standard error, adjusted for degrees of freedom."""
    fewer = t.ppf(1 - ALPHA / 2, n - 1) / t.ppf(1 - ALPHA / 2, clusters - 1)
    return min(n, mean * (1 - mean) / error**2 * fewer**2)


def expected(table, clustered, by_tails=False):
    columns = ((3, "x"), (4, "y"), (5, "passed"), (6, "share"))
    for group in ("a", "b"):
        for place, column in columns if clustered and not by_tails else columns[2:]:
            of = [row for row in table if row[1] == group and row[place] != ""]
            values = numpy.array([row[place] for row in of], dtype=float)
            codes = numpy.unique([row[2] for row in of], return_inverse=True)[1]
            clusters = int(codes.max()) + 1
            # Independent rows are clusters of one. (The HC1 of a GLM has no factor n / (n - 1).)
            groups = codes if clustered else numpy.arange(len(of))
            robust = {"cov_type": "cluster", "cov_kwds": {"groups": groups}, "use_t": True}
            constant = numpy.ones_like(values)
            fit = sm.OLS(values, constant).fit(**robust)
            low, high = fit.conf_int(ALPHA)[0]
            rate = column == "passed"
            if by_tails:
                mean, rows_of, sure = values.mean(), len(values), values.min() == 1
                if not sure:
                    rows_of = effective(
                        mean, fit.bse[0], rows_of, clusters if clustered else rows_of
                    )
                elif clustered:
                    rows_of = clusters
                if rate and not clustered:
                    rows_of = len(values)
                low, high = exact(mean, rows_of)
            elif rate and (values.min() == 1 or not clustered):
                n = clusters if clustered else len(values)
                low, high = proportion_confint(values.mean() * n, n, ALPHA, "wilson")
            elif rate or (column == "share" and high > 1):
                glm = sm.GLM(values, constant, family=sm.families.Binomial())
                low, high = map(expit, glm.fit(tol=1e-14, **robust).conf_int(ALPHA)[0])
                # The standard error of independent rows would be greater.
                assert not rate or fit.bse[0] > (values.std() / len(values) ** 0.5)
            yield {
                "group": group,
                "column": column,
                "n_clusters": clusters,
                "mean": float(fit.params[0]),
                "standard_error": float(fit.bse[0]),
                "ci_low": float(low),
                "ci_high": float(high),
            }


table = list(rows())
header = "id,g,repo,x,y,passed,share\n"
text = header + "".join(",".join(map(str, row)) + "\n" for row in table)
found = {
    "alpha": ALPHA,
    "csv": text,
    "expected": list(expected(table, True)),
    "independent": list(expected(table, False)),
    "exact": list(expected(table, True, by_tails=True)),
    "exact_independent": list(expected(table, False, by_tails=True)),
}
(HERE / "describe_clusters.json").write_text(json.dumps(found, indent=1) + "\n")
