#!/usr/bin/env python3
"""How often the 95 % intervals of `describe` with `cluster` contain the true rate, by simulation.

Prints the table in docs/measurements.md: the interval of the logit (`score`), that of Korn and
Graubard (`exact`), and Student's t of the means of clusters. The rate of a cluster is drawn from a
beta distribution with mean 0.2 and an intra-class correlation of 1/7. In a virtual environment with
numpy and scipy: `python tests/reference/describe_coverage.py`.
"""

import numpy as np
from scipy.stats import beta, norm, t

UNEQUAL = [98, 50, 40, 30, 20, 10, *[4] * 20]
DESIGNS = {
    "26 of 12 rows each": [12] * 26,
    "26 of unequal size": UNEQUAL,
    "52 of unequal size": UNEQUAL * 2,
    "104 of unequal size": UNEQUAL * 4,
}
A, B = 1.2, 4.8


def clopper_pearson(successes, rows):
    failures = rows - successes
    low = beta.ppf(0.025, successes, failures + 1) if successes > 0 else 0.0
    high = beta.ppf(0.975, successes + 1, failures) if failures > 0 else 1.0
    return low, high


def wilson(rate, rows):
    z = norm.ppf(0.975)
    middle = rate + z**2 / (2 * rows)
    reach = z * np.sqrt(rate * (1 - rate) / rows + (z / (2 * rows)) ** 2)
    return (middle - reach) / (1 + z**2 / rows), (middle + reach) / (1 + z**2 / rows)


def intervals(sizes, passed):
    clusters, rows = len(sizes), sizes.sum()
    rate = passed.sum() / rows
    reach = t.ppf(0.975, clusters - 1)
    means = passed / sizes
    half = reach * means.std(ddof=1) / np.sqrt(clusters)
    of_means = (means.mean() - half, means.mean() + half)
    if rate in (0, 1):
        return wilson(rate, clusters), clopper_pearson(rate * clusters, clusters), of_means
    spread = rate * (1 - rate)
    variance = np.sum((passed - rate * sizes) ** 2) / rows**2 * clusters / (clusters - 1)
    half = reach * np.sqrt(max(variance, spread / rows)) / spread
    logit = np.log(rate / (1 - rate))
    score = tuple(1 / (1 + np.exp(-(logit + side * half))) for side in (-1, 1))
    effective = min(rows, spread / variance * (t.ppf(0.975, rows - 1) / reach) ** 2)
    return score, clopper_pearson(rate * effective, effective), of_means


def main(samples=2000):
    for name, design in DESIGNS.items():
        sizes, random = np.array(design), np.random.default_rng(1)
        hits = np.zeros(3)
        for _ in range(samples):
            rates = random.beta(A, B, len(sizes))
            found = intervals(sizes, random.binomial(sizes, rates))
            hits += [low <= A / (A + B) <= high for low, high in found]
        print(f"| {name} |", " | ".join(f"{100 * hit / samples:.0f} %" for hit in hits), "|")


main()
