#!/usr/bin/env python3
"""Regenerates agreement.json, what the tests of `galeras-metrics::agreement` compare with.

    python3 tests/reference/agreement.py

The pinned peers are installed into a virtual environment at first use (`in_venv`, harness.py):
Cohen's kappa is scikit-learn's `cohen_kappa_score`, its standard error statsmodels'
`cohens_kappa` (of the table of counts), alpha that of the package `krippendorff` at the nominal
level. Where a peer has no number (one label only, nobody rated twice), the file has null.
"""

import json
import pathlib
import random
import sys
import warnings

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))
from harness import in_venv, pinned  # noqa: E402

PEERS = {
    "scikit-learn": "1.7.2",
    "statsmodels": "0.14.5",
    "krippendorff": "0.8.2",
    "scipy": "1.16.3",
    "numpy": "2.3.5",
    "pandas": "2.3.3",
}
in_venv(*pinned(PEERS))

import krippendorff  # noqa: E402
import numpy  # noqa: E402
from sklearn.metrics import cohen_kappa_score, confusion_matrix  # noqa: E402
from statsmodels.stats.inter_rater import cohens_kappa  # noqa: E402

warnings.simplefilter("ignore")


def drawn(seed, n, raters, labels, agree, absent):
    """Items whose raters give the item's own label with probability `agree`, else any."""
    draw = random.Random(seed)
    items = []
    for _ in range(n):
        own = draw.randrange(labels)
        item = [own if draw.random() < agree else draw.randrange(labels) for _ in range(raters)]
        items.append([None if draw.random() < absent else label for label in item])
    return items


def number(value):
    return None if value is None or not numpy.isfinite(value) else float(value)


def expected(name, items):
    raters = len(items[0])
    case = {"name": name, "raters": raters, "items": items}
    table = numpy.array([[numpy.nan if x is None else x for x in item] for item in items]).T
    try:
        case["alpha"] = number(
            krippendorff.alpha(reliability_data=table, level_of_measurement="nominal")
        )
    except ValueError:  # one label only, or nobody rated twice
        case["alpha"] = None
    if raters == 2:
        pairs = [item for item in items if None not in item]
        one, other = [a for a, _ in pairs], [b for _, b in pairs]
        labels = sorted({label for pair in pairs for label in pair})
        kappa = number(cohen_kappa_score(one, other)) if len(labels) > 1 else None
        case["kappa"] = kappa
        counts = confusion_matrix(one, other, labels=labels) if kappa is not None else None
        case["kappa_se"] = None if kappa is None else number(cohens_kappa(counts).std_kappa)
        agree = [a == b for a, b in pairs]
        case["agreement"] = sum(agree) / len(agree) if agree else None
    return case


CASES = [
    ("two raters of the docs", [[1, 1]] * 20 + [[1, 0]] * 5 + [[0, 1]] * 10 + [[0, 0]] * 15),
    ("always the same", [[1, 1]] * 9),
    ("all but one", [[1, 1]] * 30 + [[1, 0]]),
    ("never the same", [[1, 0]] * 5 + [[0, 1]] * 5),
    ("one always says no", [[1, 0]] * 8),
    ("nobody twice", [[1, None], [None, 0], [0, None]]),
    ("one item", [[0, 1]]),
    ("three labels", [[0, 0], [1, 1], [2, 2], [0, 1], [1, 2], [2, 0], [1, 1], [1, 1]]),
    # Krippendorff (2011), Computing Krippendorff's alpha-reliability, section C.
    (
        "Krippendorff 2011",
        [
            list(column)
            for column in zip(
                [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
                [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
                [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
                [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
                strict=True,
            )
        ],
    ),
]
for seed, (n, raters, labels, agree, absent) in enumerate(
    [
        (10, 2, 2, 0.8, 0.0),
        (60, 2, 3, 0.7, 0.0),
        (60, 2, 3, 0.7, 0.2),
        (500, 2, 2, 0.95, 0.1),
        (500, 2, 3, 0.0, 0.0),
        (40, 2, 5, 0.5, 0.5),
        (40, 3, 2, 0.8, 0.0),
        (40, 3, 3, 0.6, 0.3),
        (100, 5, 3, 0.9, 0.5),
        (100, 8, 2, 0.2, 0.7),
        (960, 3, 3, 0.85, 0.05),
        (7, 4, 6, 0.3, 0.2),
    ]
):
    CASES.append((f"drawn {seed}", drawn(seed, n, raters, labels, agree, absent)))

found = [expected(name, items) for name, items in CASES]
(HERE / "agreement.json").write_text(
    "[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in found) + "\n]\n"
)
