#!/usr/bin/env python3
"""Regenerates judge.json, what the tests of `galeras-metrics::classifier` compare with.

    python3 tests/reference/judge.py

The share is that of Rogan and Gladen (1978), Estimating prevalence from the results of a screening
test. The interval is that of Lang and Reiczigel (2014), Confidence limits for prevalence of disease
adjusted for estimated sensitivity and specificity, which Lee et al. (2025), How to correctly report
LLM-as-a-judge evaluations (arXiv 2511.21140), use for judges. Their code gives
(0.4857, 0.5143) for a share of 0.5 of 10,000, and 0.9 of 5,000 and of 5,000.
"""

import json
import pathlib
from fractions import Fraction
from statistics import NormalDist

Z = NormalDist().inv_cdf(0.975)


def clip(value):
    return float(min(max(value, 0), 1))


def expected(tp, fn, fp, tn, positive, total):
    m1, m0 = tp + fn, fp + tn
    case = {"tp": tp, "fn": fn, "fp": fp, "tn": tn, "positive": positive, "all": total}
    case |= dict.fromkeys(("sensitivity", "specificity", "share", "low", "high"))
    if m1:
        case["sensitivity"] = tp / m1
    if m0:
        case["specificity"] = tn / m0
    if not (m0 and m1 and total):
        return case
    q1, q0, p = Fraction(tp, m1), Fraction(tn, m0), Fraction(positive, total)
    if q0 + q1 <= 1:
        return case
    case["share"] = clip((p + q0 - 1) / (q0 + q1 - 1))
    n, m0, m1 = total + Z**2, m0 + 2, m1 + 2
    p, q0, q1 = (positive + Z**2 / 2) / n, (tn + 1) / m0, (tp + 1) / m1
    if q0 + q1 <= 1:
        return case
    theta = (p + q0 - 1) / (q0 + q1 - 1)
    shift = 2 * Z**2 * (-(1 - theta) * q0 * (1 - q0) / m0 + theta * q1 * (1 - q1) / m1)
    variance = (
        p * (1 - p) / n + (1 - theta) ** 2 * q0 * (1 - q0) / m0 + theta**2 * q1 * (1 - q1) / m1
    )
    half = Z * variance**0.5 / (q0 + q1 - 1)
    case["low"], case["high"] = clip(theta + shift - half), clip(theta + shift + half)
    return case


CASES = [
    (4500, 500, 500, 4500, 5000, 10000),
    (45, 5, 10, 40, 130, 200),
    (45, 5, 10, 40, 0, 200),
    (45, 5, 10, 40, 200, 200),
    (20, 0, 0, 20, 13, 50),
    (3, 1, 2, 6, 17, 40),
    (1, 0, 0, 1, 1, 2),
    # No better than chance; so only when smoothed; a class without items; no items.
    (5, 5, 5, 5, 10, 20),
    (2, 0, 900, 100, 10, 20),
    (0, 0, 3, 7, 5, 10),
    (6, 4, 0, 0, 5, 10),
    (6, 4, 3, 7, 0, 0),
]
found = [expected(*case) for case in CASES]
pathlib.Path(__file__).with_suffix(".json").write_text(
    "[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in found) + "\n]\n"
)
