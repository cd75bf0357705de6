#!/usr/bin/env python3
"""Regenerates contours.json, what tests of sensitivity contours compare with.

    python3 tests/reference/contours.py

The pinned peer is PySensemakr, the Python package of Cinelli and Hazlett's sensemakr: estimates,
standard errors and t adjusted for a confounder of given partial R², and the bounds by observed
covariates. It is installed into a virtual environment at first use (`in_venv`, harness.py). The
rows are seeded and in the file: a binary treatment that depends on three covariates.
"""

import json
import pathlib
import random
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))
from harness import in_venv, pinned  # noqa: E402

in_venv(
    *pinned(
        {
            "PySensemakr": "0.0.8",
            "statsmodels": "0.14.5",
            "scipy": "1.16.3",
            "numpy": "2.4.6",
            "pandas": "2.3.3",
        }
    )
)

import pandas  # noqa: E402
import statsmodels.formula.api as smf  # noqa: E402
from sensemakr import bias_functions, sensitivity_bounds  # noqa: E402

COVARIATES = ["size", "age", "depth"]


def rows():
    draw = random.Random(12)
    for _ in range(150):
        size, age, depth = draw.gauss(10, 2), draw.gauss(0, 1), draw.random()
        arm = int(0.15 * (size - 10) + 0.3 * age + draw.gauss(0, 1) > 0.2)
        y = 1.3 * arm + 0.25 * size - 0.4 * age + 0.2 * depth + draw.gauss(0, 1.5)
        yield [round(size, 4), round(age, 4), round(depth, 4), arm, round(y, 4)]


table = pandas.DataFrame(rows(), columns=[*COVARIATES, "arm", "y"])
fit = smf.ols("y ~ arm + " + " + ".join(COVARIATES), data=table).fit()
known = {
    "estimate": float(fit.params["arm"]),
    "se": float(fit.bse["arm"]),
    "dof": int(fit.df_resid),
}
grid = []
for treatment_r2 in (0.0, 0.02, 0.1, 0.4, 0.9):
    for outcome_r2 in (0.0, 0.05, 0.3, 1.0):
        at = {"r2dz_x": treatment_r2, "r2yz_dx": outcome_r2}
        grid.append(
            {
                "treatment_r2": treatment_r2,
                "outcome_r2": outcome_r2,
                "estimate": float(bias_functions.adjusted_estimate(**at, **known)),
                "standard_error": float(
                    bias_functions.adjusted_se(**at, se=known["se"], dof=known["dof"])
                ),
            }
        )
bounds = []
for covariate in COVARIATES:
    for times in (1, 2, 3):
        found = sensitivity_bounds.ovb_bounds(
            model=fit, treatment="arm", benchmark_covariates=[covariate], kd=times, ky=times
        ).iloc[0]
        bounds.append(
            {
                "covariate": covariate,
                "times": times,
                "treatment_r2": float(found["r2dz_x"]),
                "outcome_r2": float(found["r2yz_dx"]),
                "estimate": float(found["adjusted_estimate"]),
                "standard_error": float(found["adjusted_se"]),
                "t": float(found["adjusted_t"]),
            }
        )
answer = {
    "csv": table.to_csv(index=False),
    "estimate": float(known["estimate"]),
    "standard_error": float(known["se"]),
    "degrees": float(known["dof"]),
    "grid": grid,
    "bounds": bounds,
}
(HERE / "contours.json").write_text(json.dumps(answer, indent=1) + "\n")
