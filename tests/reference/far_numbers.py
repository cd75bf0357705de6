#!/usr/bin/env python3
"""Regenerates far_numbers.json, what tests of numbers beyond 2^53 compare with.

    python3 tests/reference/far_numbers.py

There is no peer, as peers round such numbers first: everything is computed in fractions, and in
decimals of fifty digits where there is a root. The rows are in the file. `x` is 2^60 + 37 i, as a
signed and an unsigned integer; `z` is 2^61 and some thousands, with ties; `y` is a fraction near
zero. Of each there are the moments, with `x` the coefficients, and the error of the mean by
clusters.
"""

import json
import pathlib
from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 50
ROWS = 60


def noise(i, k):
    return (i * i * (31 + 2 * k) + i * (17 + 7 * k) + 5 * k) % 10007 * 7919 % 10007 % 101


def rows():
    for i in range(ROWS):
        x = 2**60 + 37 * i
        z = 2**61 + 40 * i + 25 * noise(i, 1)
        y = Fraction(30 * i + 29 * noise(i, 2), 8)
        yield i, x, z, y, noise(i, 3) % 7


def decimal(fraction):
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def deviations(values):
    mean = Fraction(sum(values)) / len(values)
    return [value - mean for value in values]


def product(one, other):
    return sum((a * b for a, b in zip(deviations(one), deviations(other), strict=True)), Fraction())


def coefficient(one, other):
    squares = decimal(product(one, one)) * decimal(product(other, other))
    return float(decimal(product(one, other)) / squares.sqrt())


def ranks(values):
    """Twice the rank; those of equal values are the mean of theirs."""
    return [2 * sum(o < value for o in values) + values.count(value) + 1 for value in values]


def kendall(one, other):
    def signs_of(values):
        return [(values[i] > values[j]) - (values[i] < values[j]) for i, j in pairs]

    pairs = [(i, j) for i in range(ROWS) for j in range(i)]
    signs = list(zip(signs_of(one), signs_of(other), strict=True))
    untied = [sum(pair[which] != 0 for pair in signs) for which in (0, 1)]
    excess = sum(a * b for a, b in signs)
    return float(Decimal(excess) / (Decimal(untied[0]) * Decimal(untied[1])).sqrt())


def moments(values, clusters):
    n = len(values)
    variance = product(values, values) / (n - 1)
    sums = {}
    for deviation, cluster in zip(deviations(values), clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0) + deviation
    clustered = Fraction(len(sums), len(sums) - 1) * sum(total**2 for total in sums.values())
    return {
        "mean": float(Fraction(sum(values)) / n),
        "var": float(variance),
        "std": float(decimal(variance).sqrt()),
        "standard_error": float(decimal(variance / n).sqrt()),
        "clustered_error": float(decimal(clustered / n**2).sqrt()),
    }


def related(x, other):
    return {
        "pearson": coefficient(x, other),
        "spearman": coefficient(ranks(x), ranks(other)),
        "kendall": kendall(x, other),
        "covar_samp": float(product(x, other) / (ROWS - 1)),
        "regr_slope": float(product(x, other) / product(x, x)),
    }


table = list(rows())
_, x, z, y, clusters = ([row[at] for row in table] for at in range(5))
lines = [f"{i},{x},{z},{float(y)},k{cluster}" for i, x, z, y, cluster in table]
answer = {
    "csv": "\n".join(["id,x,z,y,place", *lines, ""]),
    "columns": {name: moments(of, clusters) for name, of in (("x", x), ("z", z), ("y", y))},
    "with_x": {name: related(x, of) for name, of in (("z", z), ("y", y))},
}
path = pathlib.Path(__file__).resolve().parent / "far_numbers.json"
path.write_text(json.dumps(answer, indent=1) + "\n")
