#!/usr/bin/env python3
"""Mixed logistic models by Laplace's approximation, with dense matrices, for crates/galeras-causal.

Prints numbers that are constants of the tests there, and writes `mixed/answers.csv`. The model of
the data set cbpp is that of lme4's help page `?cbpp`, whose printed digits it meets. In a virtual
environment with numpy and scipy 1.17: `python tests/reference/mixed_binary.py`.
"""

from pathlib import Path

import numpy as np
from scipy import optimize

HERE = Path(__file__).parent / "mixed"


def laplace(y, x, groups):
    """-2 times the logarithm of the likelihood, as a function of deviations and coefficients."""
    designs = [np.eye(group.max() + 1)[group] for group in groups]

    def deviance(parameters):
        deviations, beta = parameters[: len(groups)], parameters[len(groups) :]
        z = np.hstack([d * s for d, s in zip(designs, deviations, strict=True)])
        u = np.zeros(z.shape[1])
        for _ in range(100):
            eta = x @ beta + z @ u
            mu = 1 / (1 + np.exp(-eta))
            hessian = (z * (mu * (1 - mu))[:, None]).T @ z + np.eye(len(u))
            step = np.linalg.solve(hessian, z.T @ (y - mu) - u)
            u += step
            if np.abs(step).max() < 1e-13:
                break
        eta = x @ beta + z @ u
        mu = 1 / (1 + np.exp(-eta))
        hessian = (z * (mu * (1 - mu))[:, None]).T @ z + np.eye(len(u))
        likelihood = np.sum(y * eta - np.logaddexp(0, eta))
        return -2 * likelihood + u @ u + np.linalg.slogdet(hessian)[1]

    return deviance


def hessian_of(function, at, stride=1e-3):
    size = len(at)
    found = np.zeros((size, size))
    units = np.eye(size) * stride
    for i in range(size):
        for j in range(size):
            parts = [
                (8 * w, a, b) for w, a, b in ((1, 1, 1), (-1, 1, -1), (-1, -1, 1), (1, -1, -1))
            ] + [(0, 0, 0)]
            first = sum(w / 8 * function(at + a * units[i] + b * units[j]) for w, a, b in parts[:4])
            wide = sum(
                w / 8 * function(at + 2 * a * units[i] + 2 * b * units[j]) for w, a, b in parts[:4]
            )
            found[i, j] = (16 * first - wide) / 12 / (4 * stride**2)
    return found


def show(name, y, x, groups):
    function = laplace(y, x, groups)
    start = np.concatenate([np.ones(len(groups)), np.zeros(x.shape[1])])
    best = optimize.minimize(function, start, method="BFGS", options={"gtol": 1e-7})
    best = optimize.minimize(
        function,
        best.x,
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 20000},
    )
    covariance = 2 * np.linalg.inv(hessian_of(function, best.x))
    k = len(groups)
    print(name, "deviance", repr(float(best.fun)), "deviations", np.abs(best.x[:k]).tolist())
    print("  coefficients", best.x[k:].tolist())
    print("  errors", np.sqrt(np.diag(covariance))[k:].tolist())


def cbpp():
    table = np.loadtxt(HERE / "cbpp.csv", delimiter=",", skiprows=1, dtype=int)
    rows = [
        (herd - 1, period, int(at < cases))
        for herd, cases, size, period in table
        for at in range(size)
    ]
    herd, period, y = np.array(rows).T
    x = np.column_stack([np.ones(len(y))] + [period == p for p in (2, 3, 4)]).astype(float)
    show("cbpp", y, x, [herd])


def answers():
    rng = np.random.default_rng(42)
    model, problem, _ = (axis.ravel() for axis in np.indices((6, 30, 2)))
    prompt = np.arange(len(model)) % 2
    eta = -0.3 + 0.8 * prompt + 0.6 * rng.normal(size=6)[model] + 1.2 * rng.normal(size=30)[problem]
    right = (rng.uniform(size=len(eta)) < 1 / (1 + np.exp(-eta))).astype(int)
    rows = zip(model, problem, prompt, right, strict=True)
    lines = [f"{m},{p},{a},{r}" for m, p, a, r in rows]
    (HERE / "answers.csv").write_text("model,problem,prompt,right\n" + "\n".join(lines) + "\n")
    x = np.column_stack([np.ones(len(eta)), prompt])
    show("answers", right, x, [model, problem])


cbpp()
answers()
