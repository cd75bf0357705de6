"""Estimators as their textbooks write them, for the tables of `regress.py`.

Not a script of its own: `regress.py` imports it in its virtual environment.
"""

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy import special, stats


def noise(i, k):
    """A number from 0 to 100 that looks random."""
    mixed = (i * i * (31 + 2 * k) + i * (17 + 7 * k) + 5 * k) % 10_007
    return mixed * 7_919 % 10_007 % 101


def sandwich(x, y, c, kind, clusters):
    """Coefficient 1 of least squares with its CR standard error and degrees of freedom."""
    n, k = x.shape
    bread = np.linalg.inv(x.T @ x)
    b = bread @ x.T @ y
    u = y - x @ b
    hat = x @ bread @ x.T
    groups = [np.flatnonzero(clusters == g) for g in np.unique(clusters)]
    meat, rows = np.zeros((k, k)), []
    for at in groups:
        left = np.eye(len(at)) - hat[np.ix_(at, at)]
        value, vector = np.linalg.eigh(left)
        power = {"CR0": 0.0, "CR1": 0.0, "CR2": -0.5, "CR3": -1.0}[kind]
        adjust = (
            vector * np.where(value > 1e-12, np.maximum(value, 1e-300) ** power, 0)
        ) @ vector.T
        score = x[at].T @ adjust @ u[at]
        meat += np.outer(score, score)
        rows.append((np.eye(n) - hat)[at].T @ adjust @ x[at] @ bread[:, c])
    g = len(groups)
    if kind == "CR1":
        meat = meat * g / (g - 1) * (n - 1) / (n - k)
    degrees = g - 1
    if kind == "CR2":
        # Bell and McCaffrey: with equal variances the quadratic form has this matrix.
        form = np.array(rows)
        eigen = np.linalg.eigvalsh(form @ form.T)
        degrees = eigen.sum() ** 2 / (eigen**2).sum()
    return float(b[c]), float(np.sqrt((bread @ meat @ bread)[c, c])), float(degrees)


def estimate(value, error, degrees, alpha=0.05):
    t = value / error
    half = stats.t.ppf(1 - alpha / 2, degrees) * error
    return {
        "estimate": value,
        "standard_error": error,
        "statistic": t,
        "df": degrees,
        "p_value": 2 * stats.t.sf(abs(t), degrees),
        "ci_low": value - half,
        "ci_high": value + half,
    }


def paired(d, alpha=0.05):
    return estimate(float(d.mean()), float(d.std(ddof=1) / np.sqrt(len(d))), len(d) - 1, alpha)


def modifiers(differences, columns):
    """HC3 slopes on standardised modifiers, and effects by fifths."""
    found = {}
    for name, column in columns.items():
        z = (column - column.mean()) / column.std(ddof=1)
        fit = sm.OLS(differences, sm.add_constant(z)).fit(cov_type="HC3", use_t=True)
        cut, edges = pd.qcut(column, 5, duplicates="drop", retbins=True)
        groups = []
        for at, (_, inside) in enumerate(pd.Series(differences).groupby(cut.codes)):
            groups.append(
                {
                    "low": edges[at],
                    "high": edges[at + 1],
                    "n": len(inside),
                    "estimate": inside.mean(),
                    "standard_error": inside.std(ddof=1) / np.sqrt(len(inside)),
                }
            )
        found[name] = {
            "estimate": fit.params[1],
            "standard_error": fit.bse[1],
            "p_value": fit.pvalues[1],
            "ci_low": fit.conf_int()[1][0],
            "ci_high": fit.conf_int()[1][1],
            "groups": groups,
        }
    return found


def fitted(x, t):
    """Maximum likelihood of a logistic regression with an intercept."""
    z = np.column_stack([np.ones(len(t)), x])
    scale = np.abs(z).max(0)
    z = z / scale
    beta = np.zeros(z.shape[1])
    for _ in range(60):
        e = special.expit(z @ beta)
        beta += np.linalg.solve((z * (e * (1 - e))[:, None]).T @ z, z.T @ (t - e))
    return z, beta


def m_estimation(equations, theta, difference, clusters):
    """The standard error of a difference by the sandwich of stacked estimating equations."""
    columns = []
    for at in range(len(theta)):
        moved = theta.astype(complex)
        moved[at] += 1e-30j
        columns.append(equations(moved).sum(0).imag / 1e-30)
    bread = np.linalg.inv(np.array(columns).T)
    g = equations(theta)
    g = pd.DataFrame(g).groupby(clusters).sum().values
    variance = bread @ (g.T @ g) @ bread.T
    return float(np.sqrt(difference @ variance @ difference))


def weighted(x, t, y, estimand, clip, clusters):
    z, beta = fitted(x, t)
    k = len(beta)

    def weights(theta):
        e = 1 / (1 + np.exp(-(z @ theta[:k])))
        e = np.where(e.real < clip[0], clip[0], np.where(e.real > clip[1], clip[1], e))
        return {
            "ate": (1 / e, 1 / (1 - e)),
            "att": (1 + 0 * e, e / (1 - e)),
            "atc": ((1 - e) / e, 1 + 0 * e),
            "ato": (1 - e, e),
        }[estimand]

    def equations(theta):
        one, zero = weights(theta)
        e = 1 / (1 + np.exp(-(z @ theta[:k])))
        return np.column_stack(
            [z * (t - e)[:, None], t * one * (y - theta[k]), (1 - t) * zero * (y - theta[k + 1])]
        )

    one, zero = weights(beta)
    means = [
        (t * one * y).sum() / (t * one).sum(),
        ((1 - t) * zero * y).sum() / ((1 - t) * zero).sum(),
    ]
    theta = np.concatenate([beta, means])
    difference = np.zeros(k + 2)
    difference[k:] = 1, -1
    error = m_estimation(equations, theta, difference, clusters)
    return {"estimate": means[0] - means[1], "standard_error": error}


def matched(x, t, y):
    """Abadie and Imbens (2006), by comparing every unit with every other."""
    z, beta = fitted(x, t)
    e = special.expit(z @ beta)
    n = len(y)
    effect, uses, squares, variance = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    for i in range(n):
        other = np.flatnonzero(t != t[i])
        far = np.abs(e[other] - e[i])
        nearest = other[far == far.min()]
        effect[i] = (y[i] - y[nearest].mean()) * (1 if t[i] else -1)
        uses[nearest] += 1 / len(nearest)
        squares[nearest] += 1 / len(nearest) ** 2
        own = np.flatnonzero((t == t[i]) & (np.arange(n) != i))
        far = np.abs(e[own] - e[i])
        variance[i] = y[np.append(own[far == far.min()], i)].var(ddof=1)
    found = {}
    for name, rows in (("ate", np.ones(n, bool)), ("att", t == 1), ("atc", t == 0)):
        m, tau = rows.sum(), effect[rows].mean()
        if name == "ate":
            rest = (variance * (uses**2 + 2 * uses - squares)).sum()
        else:
            rest = (variance * (uses**2 - squares))[~rows].sum()
        error = np.sqrt((((effect[rows] - tau) ** 2).sum() + rest) / m**2)
        found[name] = {"estimate": tau, "standard_error": error}
    return found
