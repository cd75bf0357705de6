#!/usr/bin/env python3
"""Numbers of crates/galeras-causal: two-way clusters, wild bootstrap, weights, differences in
differences, ATT.

Prints them; they are constants of the tests of that crate. In a virtual environment with
statsmodels 0.15, linearmodels 7.1, wildboottest 0.3.2 and scipy 1.17:
`python tests/reference/regress_designs.py`.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from linearmodels.iv.model import IV2SLS
from wildboottest.wildboottest import wildboottest

DATA = pd.read_csv(Path(__file__).parent / "causal" / "formula_splitmix42.csv")
ROW = np.arange(len(DATA))
FIRST, SECOND = ROW // 50, ROW * 7 % 23
# Survey weights from 0.5 to 3, and the time before and after a date.
WEIGHTS = 0.5 + (ROW * 37 % 101) / 40
AFTER = (ROW * 13 % 29 < 14).astype(float)
Y, T = DATA.y.to_numpy(), DATA.t.to_numpy(float)
X = np.column_stack([np.ones(len(DATA)), T, DATA.x1, DATA.x2])


def dense_errors(design, residuals, groups, power):
    """The sum within clusters with (I - H_g) to a power, by dense matrices."""
    bread = np.linalg.inv(design.T @ design)
    meat = np.zeros_like(bread)
    for group in np.unique(groups):
        at = np.flatnonzero(groups == group)
        value, vector = np.linalg.eigh(np.eye(len(at)) - design[at] @ bread @ design[at].T)
        value = np.where(value > 1e-12, np.maximum(value, 1e-300) ** power, 0)
        score = design[at].T @ (vector * value) @ vector.T @ residuals[at]
        meat += np.outer(score, score)
    return bread @ meat @ bread


def two_way():
    fit = sm.OLS(Y, X).fit()
    both = np.unique(np.column_stack([FIRST, SECOND]), axis=0, return_inverse=True)[1].ravel()
    groups = (FIRST, SECOND, both)
    for name, options in (("CR0", {"use_correction": False}), ("CR1", {})):
        found = sm.OLS(Y, X).fit(
            cov_type="cluster", cov_kwds={"groups": np.column_stack([FIRST, SECOND]), **options}
        )
        print("two-way", name, repr(float(found.bse[1])))
    # linearmodels agrees without its own factors.
    found = IV2SLS(Y, X, None, None).fit(
        cov_type="clustered", clusters=np.column_stack([FIRST, SECOND]), debiased=False
    )
    print("two-way CR0 of linearmodels", repr(float(found.std_errors.iloc[1])))
    parts = [dense_errors(X, fit.resid, group, -1.0) for group in groups]
    print("two-way CR3", repr(float(np.sqrt((parts[0] + parts[1] - parts[2])[1, 1]))))


def restricted_t(design, outcome, groups, signs, null):
    """t of coefficient 1 in each wild bootstrap sample under the null: every sample is refitted."""
    others = np.delete(design, 1, axis=1)
    shifted = outcome - null * design[:, 1]
    coefficients = np.linalg.lstsq(others, shifted, rcond=None)[0]
    fitted, residuals = others @ coefficients + null * design[:, 1], shifted - others @ coefficients
    bread = np.linalg.inv(design.T @ design)

    def statistic(y):
        slope = bread @ design.T @ y
        scores = design * (y - design @ slope)[:, None]
        sums = np.array([scores[groups == g].sum(axis=0) for g in np.unique(groups)])
        return (slope[1] - null) / np.sqrt((bread @ sums.T @ sums @ bread)[1, 1])

    observed = statistic(outcome)
    return observed, np.array([statistic(fitted + residuals * sign[groups]) for sign in signs])


def wild():
    rows = 120
    design, y, groups = X[:rows], Y[:rows], np.minimum(ROW[:rows] // 11, 8)
    signs = np.array(list(product([-1.0, 1.0], repeat=9)))
    for null in (0.0, 1.5, 2.2, 2.4):
        observed, drawn = restricted_t(design, y, groups, signs, null)
        share = np.mean(np.abs(drawn) >= np.abs(observed) * (1 - 1e-9))
        print("wild p of", null, repr(float(share)))

    def p_value(null):
        observed, drawn = restricted_t(design, y, groups, signs, null)
        return (1 + np.sum(np.abs(drawn) >= np.abs(observed) * (1 - 1e-9))) / 513

    centre = sm.OLS(y, design).fit().params[1]
    for side in (-1, 1):
        inner, outer = centre, centre + side * 2.0
        while abs(outer - inner) > 1e-7:
            middle = (inner + outer) / 2
            inner, outer = (middle, outer) if p_value(middle) > 0.05 else (inner, middle)
        print("wild end", repr(float(inner)))
    # wildboottest counts only statistics that are larger, so not the sample itself and its mirror.
    frame = pd.DataFrame(design, columns=["one", "t", "x1", "x2"])
    print(
        "wildboottest p of 0, all 512 signs, its count plus the 2 ties",
        wildboottest(
            sm.OLS(y, frame),
            param="t",
            cluster=groups,
            B=9999,
            weights_type="rademacher",
            show=False,
        )["p-value"].tolist(),
    )


def weighted():
    model = sm.WLS(Y, X, weights=WEIGHTS)
    print("weighted", repr(float(model.fit().params[1])))
    for kind in ("HC0", "HC1", "HC2", "HC3"):
        print("weighted", kind, repr(float(model.fit(cov_type=kind).bse[1])))
    found = model.fit(cov_type="cluster", cov_kwds={"groups": FIRST})
    print("weighted CR1", repr(float(found.bse[1])))
    root = np.sqrt(WEIGHTS)
    fit = model.fit()
    error = dense_errors(X * root[:, None], fit.resid * root, FIRST, -1.0)
    print("weighted CR3", repr(float(np.sqrt(error[1, 1]))))
    found = sm.WLS(Y, X[:, :2], weights=WEIGHTS).fit(cov_type="HC3")
    print("weighted difference", repr(float(found.params[1])), repr(float(found.bse[1])))


def differences():
    design = np.column_stack([np.ones(len(Y)), T * AFTER, T, AFTER, DATA.x1])
    found = sm.OLS(Y, design).fit(cov_type="HC3")
    print("did HC3", repr(float(found.params[1])), repr(float(found.bse[1])))
    found = sm.OLS(Y, design).fit(cov_type="cluster", cov_kwds={"groups": FIRST})
    print("did CR1", repr(float(found.bse[1])))
    found = sm.OLS(Y, design[:, :4]).fit()
    cell = [[Y[(T == t) & (AFTER == a)].mean() for a in (0, 1)] for t in (0, 1)]
    by_means = cell[1][1] - cell[1][0] - cell[0][1] + cell[0][0]
    print("did of means", repr(float(found.params[1])), repr(float(by_means)))


def att():
    """The stack of estimating equations, whose sandwich has numeric derivatives."""
    covariates = np.column_stack([np.ones(len(Y)), DATA.x1, DATA.x2, DATA.x3, DATA.x4])
    k = covariates.shape[1]

    def rows(theta):
        gamma, beta, effect = theta[:k], theta[k : 2 * k], theta[-1]
        e = 1 / (1 + np.exp(-covariates @ gamma))
        m0 = covariates @ beta
        weight = np.where(T == 1, 1.0, -e / (1 - e))
        return np.column_stack(
            [
                covariates * (T - e)[:, None],
                covariates * ((1 - T) * (Y - m0))[:, None],
                weight * (Y - m0) - T * effect,
            ]
        )

    score = sm.Logit(T, covariates).fit(disp=0, method="newton", tol=1e-14).params
    model = sm.OLS(Y[T == 0], covariates[T == 0]).fit().params
    e = 1 / (1 + np.exp(-covariates @ score))
    effect = np.sum(np.where(T == 1, 1.0, -e / (1 - e)) * (Y - covariates @ model)) / T.sum()
    theta = np.concatenate([score, model, [effect]])
    bread = np.array(
        [
            (rows(theta + 1e-5 * unit).sum(axis=0) - rows(theta - 1e-5 * unit).sum(axis=0)) / 2e-5
            for unit in np.eye(len(theta))
        ]
    ).T
    inverse = np.linalg.inv(bread)
    for name, groups in (("rows", ROW), ("clusters", ROW // 4)):
        parts = rows(theta)
        sums = np.array([np.bincount(groups, weights=column) for column in parts.T]).T
        error = np.sqrt((inverse @ sums.T @ sums @ inverse.T)[-1, -1])
        print("att by", name, repr(float(effect)), repr(float(error)))


two_way()
wild()
weighted()
differences()
att()
