#!/usr/bin/env python3
"""Regenerates effect_sizes.json: effect sizes, equivalence and power as peers compute them.

    python3 tests/reference/effect_sizes.py

The pinned peers are installed into a virtual environment at first use (`in_venv`, harness.py).
The rows are in the file: seeded, with ties, arms of unequal size, clusters of unequal size.

- Vargha and Delaney's A with its variance and degrees of freedom: statsmodels'
  `rank_compare_2indep` (Brunner and Munzel). With clusters, Obuchowski's sums over all pairs of
  rows, written out here as in her paper, without ranks. Intervals are Feng and Cliff's formula.
- Cohen's d: scipy's noncentral t, inverted with `brentq`. With clusters the sandwich of stacked
  moment conditions whose derivatives are numerical.
- TOST: statsmodels' `ttost_paired` and `ttost_ind`. Power: its `TTestPower` and `TTestIndPower`;
  that of equivalence: scipy's `quad`. Variance components: statsmodels' `anova_lm`.
"""

import json
import pathlib
import random
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))
from harness import in_venv, pinned  # noqa: E402

in_venv(*pinned({"statsmodels": "0.14.5", "scipy": "1.16.3", "numpy": "2.4.6", "pandas": "2.3.3"}))

import numpy as np  # noqa: E402
import pandas  # noqa: E402
import statsmodels.api as sm  # noqa: E402
from scipy import integrate, optimize, special, stats  # noqa: E402
from statsmodels.formula.api import ols  # noqa: E402
from statsmodels.stats.multitest import multipletests  # noqa: E402
from statsmodels.stats.nonparametric import rank_compare_2indep  # noqa: E402
from statsmodels.stats.power import TTestIndPower, TTestPower  # noqa: E402
from statsmodels.stats.weightstats import ttost_ind, ttost_paired  # noqa: E402
from statsmodels.tools.numdiff import approx_fprime  # noqa: E402

ALPHA = 0.05


def dominance_interval(delta, error, degrees):
    """Feng and Cliff 2004."""
    reach = stats.t.ppf(1 - ALPHA / 2, degrees) * error
    rest = 1 - delta**2
    half = reach * np.sqrt(rest**2 + reach**2)
    return [(delta * rest - half) / (rest + reach**2), (delta * rest + half) / (rest + reach**2)]


def dominance_row(a, variance, degrees):
    delta, error = 2 * a - 1, 2 * np.sqrt(variance)
    return {
        "delta": delta,
        "se": error,
        "df": degrees,
        "interval": dominance_interval(delta, error, degrees),
    }


def obuchowski(x, y, of_x, of_y):
    """Her Table 1 and equations, pair by pair; the clusters may be shared by both arms."""
    wins = np.array([[(a > b) + 0.5 * (a == b) for b in y] for a in x], dtype=float)
    a, (m, n) = wins.mean(), wins.shape
    v10, v01 = wins.mean(1), wins.mean(0)
    codes = sorted(set(of_x) | set(of_y))
    one = np.array([(v10[of_x == c] - a).sum() for c in codes])
    two = np.array([(v01[of_y == c] - a).sum() for c in codes])
    i10, i01, both = len(set(of_x)), len(set(of_y)), len(codes)
    s10 = i10 / ((i10 - 1) * m) * (one**2).sum()
    s01 = i01 / ((i01 - 1) * n) * (two**2).sum()
    s11 = both / (both - 1) * (one * two).sum()
    first, second = s10 / m, s01 / n
    if both == i10 + i01:
        share = (first + second) ** 2
        return a, first + second, share / (first**2 / (i10 - 1) + second**2 / (i01 - 1))
    return a, first + second + 2 * s11 / (m * n), min(i10, i01) - 1


def noncentral(t, degrees, root):
    def end(level):
        def apart(shift):
            return stats.nct.cdf(t, degrees, shift) - level

        return optimize.brentq(apart, t - 12, t + 12, xtol=1e-13) / root

    return [end(1 - ALPHA / 2), end(ALPHA / 2)]


def hedges(freedom):
    log = special.gammaln(freedom / 2) - special.gammaln((freedom - 1) / 2)
    return float(np.exp(log) / np.sqrt(freedom / 2))


def cohens_d(x, y):
    n1, n0 = len(x), len(y)
    freedom = n1 + n0 - 2
    spread = np.sqrt(((n1 - 1) * x.var(ddof=1) + (n0 - 1) * y.var(ddof=1)) / freedom)
    root = np.sqrt(n1 * n0 / (n1 + n0))
    d = (x.mean() - y.mean()) / spread
    return {
        "d": d,
        "df": freedom,
        "interval": noncentral(d * root, freedom, root),
        "correction": hedges(freedom),
    }


def cohens_dz(differences):
    n = len(differences)
    d = differences.mean() / differences.std(ddof=1)
    return {"d": d, "df": n - 1, "interval": noncentral(d * np.sqrt(n), n - 1, np.sqrt(n))}


def sandwich(moments, start, of_rows, pieces):
    """The standard error of the last parameter of stacked moments, summed within clusters."""
    at = optimize.fsolve(lambda p: moments(p).mean(0), start, xtol=1e-12)
    slope = approx_fprime(at, lambda p: moments(p).mean(0), centered=True)
    rows = moments(at) @ np.linalg.inv(slope).T / len(of_rows)
    sums = pandas.DataFrame(rows).groupby(of_rows).sum().to_numpy()
    groups = len(sums)
    error = np.sqrt(groups / (groups - 1) * (sums[:, -1] ** 2).sum())
    reach = stats.t.ppf(1 - ALPHA / 2, pieces - 1) * error
    d = at[-1]
    return {"d": d, "se": error, "df": pieces - 1, "interval": [d - reach, d + reach]}


def clustered_d(treated, outcome, clusters):
    t = treated.astype(float)
    factor = len(t) / (len(t) - 2)

    def moments(p):
        one, zero, variance, d = p
        apart = outcome - np.where(treated, one, zero)
        still = (one - zero) - d * np.sqrt(variance)
        return np.column_stack(
            [t * apart, (1 - t) * apart, factor * apart**2 - variance, np.full(len(t), still)]
        )

    x, y = outcome[treated], outcome[~treated]
    start = [x.mean(), y.mean(), outcome.var(), 0.1]
    pieces = min(len(set(clusters[treated])), len(set(clusters[~treated])))
    return sandwich(moments, start, clusters, pieces)


def clustered_dz(differences, clusters):
    n = len(differences)

    def moments(p):
        mean, variance, d = p
        apart = differences - mean
        still = np.full(n, mean - d * np.sqrt(variance))
        return np.column_stack([apart, n / (n - 1) * apart**2 - variance, still])

    start = [differences.mean(), differences.var(), 0.1]
    return sandwich(moments, start, clusters, len(set(clusters)))


def table(seed, paired):
    """treated, outcome (with ties), cluster: shared by both arms if `paired`, else not."""
    draw = random.Random(seed)
    rows = []
    for cluster in range(14):
        shift = draw.gauss(0, 1)
        for _ in range(1 + cluster % 4):
            arms = [True, False] if paired else [cluster % 2 == 0]
            for treated in arms:
                outcome = round(shift + 0.4 * treated + draw.gauss(0, 1) ** 3 / 2, 1)
                rows.append((treated, outcome, cluster))
    return rows


def columns(rows):
    treated, outcome, clusters = zip(*rows, strict=True)
    return np.array(treated), np.array(outcome), np.array(clusters)


def between(rows):
    treated, outcome, clusters = columns(rows)
    x, y = outcome[treated], outcome[~treated]
    peer = rank_compare_2indep(x, y, use_t=True)
    test = ttost_ind(x, y, -0.7, 1.1, usevar="unequal")
    return {
        "rows": rows,
        "independent": dominance_row(peer.prob1, peer.var / peer.nobs, peer.df),
        "clustered": dominance_row(*obuchowski(x, y, clusters[treated], clusters[~treated])),
        "d": cohens_d(x, y),
        "clustered_d": clustered_d(treated, outcome, clusters),
        "tost": {"low": -0.7, "high": 1.1, "p_low": test[1][1], "p_high": test[2][1]},
    }


def within(rows):
    treated, outcome, clusters = columns(rows)
    x, y, of_pairs = outcome[treated], outcome[~treated], clusters[treated]
    pairs = np.arange(len(x))
    signs = np.sign(x - y)
    constant = np.ones(len(x))
    plain = sm.OLS(signs, constant).fit()
    robust = sm.OLS(signs, constant).fit(
        cov_type="cluster", cov_kwds={"groups": of_pairs, "df_correction": True}, use_t=True
    )
    # statsmodels' correction is G / (G - 1) (n - 1) / (n - k), here with one regressor.
    test = ttost_paired(x, y, -0.6, 0.8)
    groups = len(set(of_pairs))
    within_pairs = dominance_row((plain.params[0] + 1) / 2, plain.bse[0] ** 2 / 4, len(x) - 1)
    of_clusters = dominance_row((plain.params[0] + 1) / 2, robust.bse[0] ** 2 / 4, groups - 1)
    return {
        "rows": rows,
        "pairs": dominance_row(*obuchowski(x, y, pairs, pairs)),
        "clustered": dominance_row(*obuchowski(x, y, of_pairs, of_pairs)),
        "within": within_pairs,
        "within_clustered": of_clusters,
        "dz": cohens_dz(x - y),
        "clustered_dz": clustered_dz(x - y, of_pairs),
        "tost": {"low": -0.6, "high": 0.8, "p_low": test[1][1], "p_high": test[2][1]},
    }


def groups():
    """Paired t tests of two outcomes in three groups (one of them missing), and their families."""
    draw = random.Random(8)
    rows, tests = [], []
    for at, group in enumerate(["a", "b", ""]):
        arms = {}
        for unit in range(20 + at):
            level = draw.gauss(0, 1)
            for arm, shift in (("c", 0), ("t", 0.15 * (at + 1)), ("u", 0.1)):
                y = round(level + shift + draw.gauss(0, 0.5), 3)
                z = round(level - shift + draw.gauss(0, 0.3), 3)
                rows.append((group, f"{at}-{unit}", arm, y, z))
                arms.setdefault(arm, []).append((y, z))
        for place, outcome in enumerate("yz"):
            for arm in "tu":
                one, zero = ([row[place] for row in arms[name]] for name in (arm, "c"))
                peer = ttost_paired(np.array(one), np.array(zero), -0.3, 0.3)
                test = stats.ttest_rel(one, zero)
                tests.append(
                    {
                        "group": group,
                        "outcome": outcome,
                        "treatment": arm,
                        "estimate": np.mean(one) - np.mean(zero),
                        "p": test.pvalue,
                        "p_margin": peer[0],
                        "p_worse": peer[1][1] if outcome == "y" else peer[2][1],
                    }
                )
    for name, of, over in [
        ("all", "p", []),
        ("margin_all", "p_margin", []),
        ("one_outcome", "p", ["outcome"]),
        ("contrasts_only", "p", ["group", "outcome"]),
    ]:
        families = {}
        for test in tests:
            families.setdefault(tuple(test[key] for key in over), []).append(test)
        for family in families.values():
            for test, value in zip(
                family, multipletests([test[of] for test in family], method="holm")[1], strict=True
            ):
                test[name] = value
    return {"rows": rows, "tests": tests}


def tails():
    cases = [(0.5, 3, 0.0), (2.0, 7.5, 1.5), (-1.2, 1, 0.4), (30.0, 2999, 28.0), (4.0, 12, 0.5)]
    cases += [(1.96, 400, -1.0), (60.0, 5000, 55.0), (0.0, 20, 2.0)]
    return [
        {"t": t, "df": df, "shift": nc, "upper": stats.nct.sf(t, df, nc)} for t, df, nc in cases
    ]


def equivalence_power(shift, margin, degrees, alpha):
    bound = stats.t.ppf(1 - alpha, degrees)

    def of(s):
        room = margin - bound * s
        if room <= 0:
            return 0.0
        inside = stats.norm.cdf(room - shift) - stats.norm.cdf(-room - shift)
        return inside * stats.chi.pdf(s * np.sqrt(degrees), degrees) * np.sqrt(degrees)

    return integrate.quad(of, 0, margin / bound, epsabs=1e-13, limit=400)[0]


def reached(power_of, near):
    """Where the power is 80 %, near to what `solve_power` says, which stops at five digits."""
    return optimize.brentq(lambda x: power_of(x) - 0.8, 0.99 * near, 1.01 * near, xtol=1e-12)


def power():
    paired, apart = TTestPower(), TTestIndPower()
    cases = []
    for effect, n, alpha in [(0.2, 100, 0.05), (0.5, 12, 0.01), (0.05, 3000, 0.05 / 16)]:
        cases.append(
            {
                "effect": effect,
                "n": n,
                "alpha": alpha,
                "paired": paired.power(effect, n, alpha),
                "independent": apart.power(effect, n / 2, alpha),
                "detectable": reached(
                    lambda d, n=n, a=alpha: paired.power(d, n, a),
                    paired.solve_power(None, n, alpha, 0.8),
                ),
                "needed": reached(
                    lambda n, d=effect, a=alpha: paired.power(d, n, a),
                    paired.solve_power(effect, None, alpha, 0.8),
                ),
                "needed_per_arm": reached(
                    lambda n, d=effect, a=alpha: apart.power(d, n, a),
                    apart.solve_power(effect, None, alpha, 0.8),
                ),
                "equivalence": equivalence_power(0.1, 0.3 * np.sqrt(n), n - 1, alpha),
            }
        )
    return cases


def pilot():
    """Twelve units, two arms, three samples: the mean squares of a two-way layout."""
    draw = random.Random(5)
    rows = []
    for unit in range(12):
        level, effect = draw.gauss(0, 2), 1.5 * (unit // 3) + draw.gauss(0.5, 1)
        for treated in (False, True):
            for _ in range(3):
                outcome = level + effect * treated + draw.gauss(0, 0.7)
                rows.append((treated, round(outcome, 3), unit))
    frame = pandas.DataFrame(rows, columns=["t", "y", "u"])
    anova = sm.stats.anova_lm(ols("y ~ C(t) * C(u)", frame).fit())
    noise, mixed = anova.loc["Residual", "mean_sq"], anova.loc["C(t):C(u)", "mean_sq"]
    # 4 clusters of 3 units: a one-way layout of the unit differences.
    means = frame.groupby(["u", "t"])["y"].mean().unstack()
    differences = pandas.DataFrame({"d": means[True] - means[False]})
    differences["c"] = differences.index // 3
    nested = sm.stats.anova_lm(ols("d ~ C(c)", differences).fit())
    between, rest = nested.loc["C(c)", "mean_sq"], nested.loc["Residual", "mean_sq"]
    return {
        "rows": rows,
        "effect": differences["d"].mean(),
        "sample": np.sqrt(noise),
        "unit": np.sqrt(2 * (mixed - noise) / 3),
        "unit_in_cluster": np.sqrt(max(0, rest - 2 * noise / 3)),
        "cluster": np.sqrt(max(0, (between - rest) / 3)),
    }


def plain(value):
    """Numbers of numpy as those of Python."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, np.bool_):
        return bool(value)
    return value.item() if isinstance(value, np.generic) else value


found = {
    "alpha": ALPHA,
    "between": between(table(11, paired=False)),
    "within": within(table(12, paired=True)),
    "groups": groups(),
    "tails": tails(),
    "power": power(),
    "pilot": pilot(),
}
(HERE / "effect_sizes.json").write_text(json.dumps(plain(found)) + "\n")
