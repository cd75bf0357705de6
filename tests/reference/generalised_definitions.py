"""What `generalised_models.py` computes by definition, for want of a peer.

Not a script of its own: it is imported in the virtual environment of that script.
"""

import numpy as np
from scipy import optimize, stats


def weighted_errors(x, weights, residuals, groups):
    """HC1, HC2, HC3, CR2 and CR3 of coefficient 1 by the weighted design, with dense matrices.

    Row i of the weighted design is sqrt(w) x, its residual (y - mu) / sqrt(w). CR2 has the degrees
    of freedom of Bell and McCaffrey for equal variances of those residuals.
    """
    n, k = x.shape
    design = x * np.sqrt(weights)[:, None]
    u = residuals / np.sqrt(weights)
    bread = np.linalg.inv(design.T @ design)
    hat = design @ bread @ design.T
    leverage = np.diag(hat)
    found = {}
    for kind, scaled in (
        ("HC1", u * np.sqrt(n / (n - k))),
        ("HC2", u / np.sqrt(1 - leverage)),
        ("HC3", u / (1 - leverage)),
    ):
        score = design * scaled[:, None]
        found[kind] = np.sqrt((bread @ score.T @ score @ bread)[1, 1])
    for kind, power in (("CR2", -0.5), ("CR3", -1.0)):
        meat, rows = np.zeros((k, k)), []
        for group in np.unique(groups):
            at = np.flatnonzero(groups == group)
            value, vector = np.linalg.eigh(np.eye(len(at)) - hat[np.ix_(at, at)])
            adjust = (vector * np.maximum(value, 1e-300) ** power) @ vector.T
            score = design[at].T @ adjust @ u[at]
            meat += np.outer(score, score)
            rows.append((np.eye(n) - hat)[at].T @ adjust @ design[at] @ bread[:, 1])
        found[kind] = np.sqrt((bread @ meat @ bread)[1, 1])
        if kind == "CR2":
            eigen = np.linalg.eigvalsh(np.array(rows) @ np.array(rows).T)
            found["CR2_df"] = eigen.sum() ** 2 / (eigen**2).sum()
    return found


def standardised_risks(x, params, covariance):
    """The ratio of the mean probabilities if all and if no rows were treated, delta method."""

    def log_ratio(b):
        one, zero = x.astype(complex), x.astype(complex)
        one[:, 1], zero[:, 1] = 1, 0
        mean = [np.mean(1 / (1 + np.exp(-design @ b))) for design in (one, zero)]
        return np.log(mean[0] / mean[1])

    gradient = np.array(
        [np.imag(log_ratio(params + 1e-30j * unit)) / 1e-30 for unit in np.eye(len(params))]
    )
    return {
        "log_ratio": float(np.real(log_ratio(params.astype(complex)))),
        "standard_error": np.sqrt(gradient @ covariance @ gradient),
    }


def ordinal_errors(y, x, params, thresholds, groups):
    """A proportional odds fit from the peer's optimum on, with thresholds as they are.

    Newton's method with derivatives by complex steps: the score of each row, and from it the
    Hessian by central differences of an analytic gradient.
    """
    codes = np.unique(y, return_inverse=True)[1]
    k = x.shape[1]
    cuts = thresholds(params)[1:-1]
    scale = x.std(axis=0)
    point = np.concatenate([cuts, params[:k] * scale])
    z = x / scale

    def rows(theta):
        eta = z @ theta[len(cuts) :]
        bounds = np.concatenate([[-500], theta[: len(cuts)], [500]])
        cdf = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
        return np.log(cdf(bounds[codes + 1] - eta) - cdf(bounds[codes] - eta))

    def scores(theta):
        units = np.eye(len(theta))
        return np.column_stack([np.imag(rows(theta + 1e-30j * u)) / 1e-30 for u in units])

    def hessian(theta):
        units = np.eye(len(theta))
        columns = []
        for u in units:
            # Fourth-order differences of the exact gradient.
            h = 1e-3
            g = [scores(theta + step * h * u).sum(axis=0) for step in (-2, -1, 1, 2)]
            columns.append((g[0] - 8 * g[1] + 8 * g[2] - g[3]) / (12 * h))
        return np.array(columns)

    for _ in range(8):
        point = point - np.linalg.solve(hessian(point), scores(point).sum(axis=0))
    inverse = np.linalg.inv(-hessian(point))
    influence = scores(point) @ inverse
    at = len(cuts)
    n, width = len(y), len(point)
    sums = np.array([influence[groups == g].sum(axis=0) for g in np.unique(groups)])
    g = len(sums)
    hc0 = np.sqrt((influence.T @ influence)[at, at])
    cr0 = np.sqrt((sums.T @ sums)[at, at])
    return {
        "peer_log_odds_ratio": params[0],
        "log_odds_ratio": point[at] / scale[0],
        "errors": {
            "classic": np.sqrt(inverse[at, at]) / scale[0],
            "HC0": hc0 / scale[0],
            "HC1": hc0 / scale[0] * np.sqrt(n / (n - width)),
            "CR0": cr0 / scale[0],
            "CR1": cr0 / scale[0] * np.sqrt(g / (g - 1) * (n - 1) / (n - width)),
        },
    }


def mcnemar_interval(gained, lost, alpha=0.05):
    """The ratio of gained to lost with Clopper and Pearson's interval and its mid-p version."""
    n = gained + lost
    exact = stats.beta.ppf([alpha / 2, 1 - alpha / 2], [gained, gained + 1], [lost + 1, lost])

    def share(tail, target):
        return optimize.brentq(lambda p: tail(p) - target, 1e-12, 1 - 1e-12, xtol=1e-15, rtol=1e-14)

    def upper(p):
        return stats.binom.sf(gained, n, p) + 0.5 * stats.binom.pmf(gained, n, p)

    mid = [share(upper, alpha / 2), share(upper, 1 - alpha / 2)]
    odds = lambda p: [float(v / (1 - v)) for v in p]  # noqa: E731
    return {"odds_ratio": gained / lost, "exact_interval": odds(exact), "mid_interval": odds(mid)}


def hodges_lehmann(one, zero, exact, alpha=0.05):
    """The shift and its interval, by listing all differences or averages.

    The lower end is the k-th of them, k the largest with P(statistic < k) <= alpha / 2: by the
    exact distribution, or the normal one with a correction for continuity.
    """
    if zero is None:
        n = len(one)
        listed = np.sort(((one[:, None] + one[None, :]) / 2)[np.triu_indices(n)])
        mean, deviation = n * (n + 1) / 4, np.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        if exact:
            counts = np.zeros(n * (n + 1) // 2 + 1)
            counts[0] = 1
            for rank in range(1, n + 1):
                counts[rank:] = counts[rank:] + counts[:-rank].copy()
    else:
        a, b = len(one), len(zero)
        listed = np.sort((one[:, None] - zero[None, :]).ravel())
        pooled = np.concatenate([one, zero])
        ties = np.unique(pooled, return_counts=True)[1].astype(float)
        n = a + b
        mean = a * b / 2
        deviation = np.sqrt(a * b / 12 * (n + 1 - (ties**3 - ties).sum() / (n * (n - 1))))
        if exact:
            counts = np.zeros((b + 1, a * b + 1))
            counts[:, 0] = 1
            for _ in range(a):
                new = np.zeros_like(counts)
                new[0] = counts[0]
                for j in range(1, b + 1):
                    new[j] = new[j - 1]
                    new[j, j:] += counts[j, : a * b + 1 - j]
                counts = new
            counts = counts[b]
    if exact:
        below = np.cumsum(counts) / counts.sum()
        k = int((below <= alpha / 2).sum())
    else:
        k = int(np.floor(mean - stats.norm.ppf(1 - alpha / 2) * deviation + 0.5))
    found = {"shift": float(np.median(listed))}
    if k > 0:
        found["interval"] = [float(listed[k - 1]), float(listed[len(listed) - k])]
    return found
