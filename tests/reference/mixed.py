#!/usr/bin/env python3
"""Regenerates mixed.json, what the tests of linear mixed models compare with.

    python3 tests/reference/mixed.py

The pinned peer, statsmodels' MixedLM, is installed into a virtual environment at first use
(`in_venv`, harness.py). The published data sets of lme4 are in `mixed/`; the rows of the others are
seeded and in the file: unbalanced, crossed, with columns far from zero. MixedLM takes one grouping
factor; crossed ones are variance components of a single group. Its optimiser stops where the
gradient is small, which leaves six digits or so; Nelder and Mead's method goes on from there, and
a fit counts only if it then agrees with one from another start to 1e-7.
"""

import csv
import json
import pathlib
import random
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))
from harness import in_venv, pinned  # noqa: E402

in_venv(*pinned({"statsmodels": "0.14.5", "scipy": "1.16.3", "numpy": "2.4.6", "pandas": "2.3.3"}))

import warnings  # noqa: E402

import numpy  # noqa: E402
import pandas  # noqa: E402
import scipy.optimize  # noqa: E402
from statsmodels.regression.mixed_linear_model import MixedLM, MixedLMParams  # noqa: E402

warnings.simplefilter("ignore")


def published(name):
    with open(HERE / "mixed" / f"{name}.csv", encoding="utf-8") as file:
        return pandas.DataFrame(csv.DictReader(file))


def synthetic(seed, rows, levels, deviations, slope=0.0):
    """Unbalanced crossed factors g0, g1, ...; x far from zero; a binary column `arm`."""
    draw = random.Random(seed)
    effects = [
        [draw.gauss(0, sd) for _ in range(q)] for q, sd in zip(levels, deviations, strict=True)
    ]
    tilts = [draw.gauss(0, slope) for _ in range(levels[0])]
    table = []
    for _ in range(rows):
        at = [int(q * draw.random() ** 1.5) for q in levels]
        x, arm = round(1000 + draw.gauss(0, 3), 3), int(draw.random() < 0.4)
        y = 50 + 0.3 * (x - 1000) + 1.5 * arm + draw.gauss(0, 1)
        y += sum(effect[level] for effect, level in zip(effects, at, strict=True))
        y += tilts[at[0]] * arm
        table.append([*at, x, arm, round(y, 4)])
    names = [f"g{k}" for k in range(len(levels))]
    return pandas.DataFrame(table, columns=[*names, "x", "arm", "y"])


def dummies(column):
    codes, names = pandas.factorize(column)
    return numpy.eye(len(names))[codes]


def fit(table, outcome, fixed, factors, slopes, reml):
    """Crossed intercepts of `factors`, or, with slopes, one factor with correlated effects."""
    y = table[outcome].to_numpy(dtype=float)
    centre = {name: table[name].astype(float).mean() for name in fixed}
    columns = [table[name].to_numpy(dtype=float) - centre[name] for name in fixed]
    design = numpy.column_stack([numpy.ones(len(y)), *columns])
    if slopes:
        random_design = numpy.column_stack(
            [numpy.ones(len(y)), *(table[name].to_numpy(dtype=float) for name in slopes)]
        )
        model = MixedLM(y, design, groups=table[factors[0]], exog_re=random_design)
        start = numpy.eye(random_design.shape[1])
        size = random_design.shape[1]
        lower = numpy.tril_indices(size)

        def packed(values):
            factor = numpy.zeros((size, size))
            factor[lower] = values
            return MixedLMParams.from_components(
                fe_params=numpy.zeros(design.shape[1]), cov_re_sqrt=factor
            )

        first = start[lower]
    else:
        zeros = numpy.zeros(len(y))
        model = MixedLM(y, design, groups=zeros, exog_re=None, exog_vc=vc_spec(table, factors))
        count = len(factors)

        def packed(values):
            return MixedLMParams.from_components(
                fe_params=numpy.zeros(design.shape[1]),
                cov_re_sqrt=numpy.zeros((0, 0)),
                vcomp=numpy.asarray(values) ** 2,
            )

        first = numpy.ones(count)
    model.reml, model.use_sqrt = reml, True
    model.cov_pen = model.fe_pen = None
    model._cov_sing = 0

    def negative(values):
        return -model.loglike(packed(values), profile_fe=True)

    found = []
    for factor in (1.0, 0.6, 0.4, 0.25):
        best = first * factor + 0.05
        for _ in range(4):
            best = scipy.optimize.minimize(
                negative,
                best,
                method="Nelder-Mead",
                options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000, "maxfev": 4000},
            ).x
        found.append(best)
    # Nelder and Mead's method may stop on the bound; the best two must agree.
    found.sort(key=negative)
    assert numpy.allclose(abs(found[0]), abs(found[1]), rtol=1e-6, atol=2e-6), found
    parameters = packed(found[0])
    fe_params, _ = model.get_fe_params(parameters.cov_re, parameters.vcomp)
    parameters.fe_params = fe_params
    scale = model.get_scale(fe_params, parameters.cov_re, parameters.vcomp)
    variance = covariance(table, factors, slopes, parameters, design, y, scale)
    coefficients = numpy.asarray(fe_params).copy()
    shift = numpy.eye(len(coefficients))
    for at, name in enumerate(fixed, start=1):
        shift[0, at] = -centre[name]
    return {
        "coefficients": list(shift @ coefficients),
        "standard_errors": list(numpy.sqrt(numpy.diag(shift @ variance @ shift.T))),
        "components": [
            float(value)
            for value in (
                (numpy.asarray(parameters.cov_re) * scale)[lower]
                if slopes
                else numpy.asarray(parameters.vcomp) * scale
            )
        ],
        "residual": float(scale),
        "log_likelihood": float(-negative(found[0])),
    }


def vc_spec(table, factors):
    from statsmodels.regression.mixed_linear_model import VCSpec

    return VCSpec(
        list(factors),
        [[list(range(table[name].nunique()))] for name in factors],
        [[dummies(table[name])] for name in factors],
    )


def covariance(table, factors, slopes, parameters, design, y, scale):
    """(X' V^-1 X)^-1, dense."""
    total = numpy.eye(len(y))
    if slopes:
        columns = [numpy.ones(len(y)), *(table[name].to_numpy(dtype=float) for name in slopes)]
        effects = numpy.column_stack(columns)
        same = dummies(table[factors[0]])
        total += (effects @ parameters.cov_re @ effects.T) * (same @ same.T)
    else:
        for name, variance in zip(factors, parameters.vcomp, strict=True):
            total += variance * dummies(table[name]) @ dummies(table[name]).T
    return scale * numpy.linalg.inv(design.T @ numpy.linalg.solve(total, design))


CASES = [
    ("dyestuff", "yield", [], ["batch"], []),
    ("penicillin", "diameter", [], ["plate", "sample"], []),
    ("pastes", "strength", [], ["sample", "batch"], []),
    ("sleepstudy", "reaction", ["days"], ["subject"], []),
    ("sleepstudy", "reaction", ["days"], ["subject"], ["days"]),
    ("three", "y", ["x", "arm"], ["g0", "g1", "g2"], []),
    ("tilted", "y", ["x", "arm"], ["g0"], ["arm"]),
]

made = {
    "three": synthetic(5, 240, [30, 12, 4], [0.8, 0.5, 1.2]),
    "tilted": synthetic(6, 200, [25], [1.0], slope=0.8),
}
expected = []
for name, outcome, fixed, factors, slopes in CASES:
    table = made[name] if name in made else published(name)
    for reml in (True, False):
        case = {"data": name, "outcome": outcome, "fixed": fixed, "random": factors}
        case |= {"slopes": slopes, "reml": reml, "n": len(table)}
        expected.append(case | fit(table, outcome, fixed, factors, slopes, reml))
        print(expected[-1])
found = {
    "data": {name: table.to_csv(index=False) for name, table in made.items()},
    "expected": expected,
}
(HERE / "mixed.json").write_text(json.dumps(found, indent=1) + "\n")
