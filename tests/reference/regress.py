#!/usr/bin/env python3
"""Regenerates regress.json: tables, and what numpy, SciPy, statsmodels and pandas say of them.

    python3 tests/reference/regress.py

The pinned peers are installed into a virtual environment at first use (`in_venv`, harness.py).
"""

import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))
from harness import in_venv, pinned  # noqa: E402

in_venv(*pinned({"numpy": "2.4.6", "scipy": "1.17.1", "statsmodels": "0.15.0", "pandas": "3.1.1"}))

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import statsmodels.api as sm  # noqa: E402
from scipy import special, stats  # noqa: E402
from statsmodels.stats.multitest import multipletests  # noqa: E402

from regress_estimators import (  # noqa: E402
    estimate,
    fitted,
    matched,
    modifiers,
    noise,
    paired,
    sandwich,
    weighted,
)


def arms():
    """60 units under three arms; units lie in clusters of different sizes."""
    rows = []
    for unit in range(60):
        for at, (arm, effect) in enumerate([("c", 0), ("t1", 14), ("t2", -9)]):
            y = 300 + 2 * noise(unit, 0) + effect + noise(3 * unit + at, 1) + (unit % 15) * at
            z = 50 + noise(unit, 3) + noise(3 * unit + at, 4) // 4 + at * (noise(unit, 2) // 10)
            rows.append(
                (
                    f"u{unit:02}",
                    f"g{unit * unit % 17:02}",
                    arm,
                    y,
                    z,
                    noise(unit, 2),
                    noise(unit, 5) // 10,
                )
            )
    return pd.DataFrame(rows, columns=["unit", "place", "arm", "y", "z", "size", "depth"])


def three_arms():
    frame = arms()
    wide = {name: frame.pivot(index="unit", columns="arm", values=name) for name in ("y", "z")}
    unit = frame[frame.arm == "c"].set_index("unit")
    contrasts = [("t1", "c"), ("t2", "c"), ("t2", "t1")]
    result = {"csv": frame.to_csv(index=False), "contrasts": []}
    p = []
    for treatment, control in contrasts:
        for outcome in ("y", "z"):
            d = (wide[outcome][treatment] - wide[outcome][control]).astype(float)
            row = {"treatment": treatment, "control": control, "outcome": outcome, **paired(d)}
            row["level_90"] = paired(d, 0.1)
            p.append(row["p_value"])
            for kind in ("CR0", "CR1", "CR2", "CR3"):
                row[kind] = estimate(
                    *sandwich(np.ones((60, 1)), d.values, 0, kind, unit.place.values)
                )
            two = frame[frame.arm.isin([treatment, control])]
            t = (two.arm == treatment).astype(float).values
            y, size = two[outcome].astype(float).values, two["size"].astype(float).values
            x = np.column_stack([np.ones(len(y)), t, size])
            lin = np.column_stack([x[:, :2], size - size.mean(), t * (size - size.mean())])
            for kind in ("CR0", "CR1", "CR2", "CR3"):
                row["ols_" + kind] = estimate(*sandwich(x, y, 1, kind, two.unit.values))
                row["lin_" + kind] = estimate(*sandwich(lin, y, 1, kind, two.unit.values))
                row["place_" + kind] = estimate(*sandwich(x, y, 1, kind, two.place.values))
            columns = {n: unit[n].astype(float).values for n in ("size", "depth")}
            row["modifiers"] = modifiers(d.values, columns)
            row["modifiers_place"] = {}
            for name, column in columns.items():
                x = sm.add_constant((column - column.mean()) / column.std(ddof=1))
                slope = sandwich(x, d.values, 1, "CR2", unit.place.values)
                row["modifiers_place"][name] = estimate(*slope)
            wilcoxon = stats.wilcoxon(
                d, zero_method="wilcox", correction=False, method="asymptotic"
            )
            walsh = (d.values[:, None] + d.values[None, :])[np.triu_indices(60)] / 2
            row["location"] = {
                "median": np.median(d),
                "hodges_lehmann": np.median(walsh),
                "trimmed_mean": stats.trim_mean(d, 0.1),
                "wilcoxon_w": wilcoxon.statistic,
                "wilcoxon_p": wilcoxon.pvalue,
                "sign_p": stats.binomtest(int((d > 0).sum()), int((d != 0).sum())).pvalue,
                "positive": int((d > 0).sum()),
                "negative": int((d < 0).sum()),
                "zero": int((d == 0).sum()),
                "ratio_of_means": wide[outcome][treatment].mean() / wide[outcome][control].mean(),
            }
            sd = np.sqrt(
                (wide[outcome][treatment].var(ddof=1) + wide[outcome][control].var(ddof=1)) / 2
            )
            row["standardised_effect"] = d.mean() / sd
            result["contrasts"].append(row)
    for row, holm in zip(result["contrasts"], multipletests(p, method="holm")[1], strict=False):
        row["holm"] = holm
    first = multipletests(p[:4], method="holm")[1]
    result["holm_control_only"] = list(first)
    for at in range(0, 6, 2):
        pair = result["contrasts"][at : at + 2]
        slopes = [m for row in pair for m in row["modifiers"].values()]
        for slope, q in zip(
            slopes, multipletests([s["p_value"] for s in slopes], method="fdr_bh")[1], strict=False
        ):
            slope["q_value"] = q
    friedman = {}
    for outcome in ("y", "z"):
        found = stats.friedmanchisquare(*(wide[outcome][arm] for arm in ("c", "t1", "t2")))
        friedman[outcome] = {"chi2": found.statistic, "p": found.pvalue}
    result["friedman"] = friedman
    return result


def samples():
    """Units with several answers under an arm, and some that lack one."""
    rows = []
    for unit in range(40):
        answers = {"c": 1 + unit % 2, "t": 1 + unit % 3}
        if unit % 10 == 4:
            answers["t"] = 0
        if unit % 20 == 7:
            answers["c"] = 0
        for arm, count in answers.items():
            for sample in range(count):
                y = (
                    80
                    + noise(unit, 0)
                    + (6 if arm == "t" else 0)
                    + noise(7 * unit + sample, 1 + len(rows) % 3)
                )
                rows.append((unit, arm, sample, y))
    frame = pd.DataFrame(rows, columns=["unit", "arm", "sample", "y"])
    means = frame.groupby(["unit", "arm"]).y.mean().unstack()
    whole = means.dropna()
    # Every estimator has the units that have both.
    kept = frame[frame.unit.isin(whole.index)]
    x = np.column_stack([np.ones(len(kept)), (kept.arm == "t").astype(float)])
    ols = estimate(*sandwich(x, kept.y.astype(float).values, 1, "CR2", kept.unit.values))
    welch = stats.ttest_ind(kept.y[kept.arm == "t"], kept.y[kept.arm == "c"], equal_var=False)
    return {
        "csv": frame.to_csv(index=False),
        "rows": len(kept),
        "pairs": len(whole),
        "incomplete": len(means) - len(whole),
        "paired": paired(whole.t - whole.c),
        "ols": ols,
        "welch": {"statistic": welch.statistic, "df": welch.df, "p_value": welch.pvalue},
    }


def independent():
    """Rows of two arms without units: how an effect changes with a column."""
    n = 150
    x = np.array([noise(i, 1) for i in range(n)], float)
    w = np.array([noise(i, 4) % 7 for i in range(n)], float)
    t = np.array([1.0 if noise(i, 2) + x[i] / 4 > 60 else 0.0 for i in range(n)])
    y = np.array([40 + noise(i, 0) + t[i] * (5 + x[i] / 3) for i in range(n)]).round()
    frame = pd.DataFrame({"arm": np.where(t == 1, "t", "c"), "y": y, "x": x, "w": w})
    found = {}
    for name, column in (("x", x), ("w", w)):
        z = (column - column.mean()) / column.std(ddof=1)
        design = np.column_stack([np.ones(n), t, z, t * z])
        fit = sm.OLS(y, design).fit(cov_type="HC3", use_t=True)
        found[name] = {
            "estimate": fit.params[3],
            "standard_error": fit.bse[3],
            "p_value": fit.pvalues[3],
            "ci_low": fit.conf_int()[3][0],
            "ci_high": fit.conf_int()[3][1],
        }
    q = multipletests([m["p_value"] for m in found.values()], method="fdr_bh")[1]
    for slope, value in zip(found.values(), q, strict=False):
        slope["q_value"] = value
    return {"csv": frame.to_csv(index=False), "modifiers": found}


def confounded():
    """240 rows of which `x` moves arm and outcome, and `m` the effect; rows lie in 24 places."""
    rows = []
    for i in range(240):
        x, m = noise(i, 0), noise(i, 1)
        treated = x + noise(i, 2) > 100
        y = 300 + 3 * x + noise(i, 3) + (10 + m // 5) * treated
        rows.append((f"g{i % 24:02}", "t" if treated else "c", y, x, m, int(m > 60)))
    frame = pd.DataFrame(rows, columns=["place", "arm", "y", "x", "m", "flag"])
    t, y = (frame.arm == "t").values.astype(float), frame.y.values.astype(float)
    place, x = frame.place.values, frame.x.values.astype(float)
    found = {"csv": frame.to_csv(index=False), "modifiers": {}, "balance": {}}
    for name in ("m", "flag"):
        m = frame[name].values.astype(float)
        z = (m - m.mean()) / m.std(ddof=1)
        design = np.column_stack([np.ones(240), t * z, t, z, x])
        fit = sm.OLS(y, design).fit(cov_type="HC3", use_t=True)
        cut = pd.Categorical(m).codes if name == "flag" else pd.qcut(m, 5).codes
        groups, of_place, welch = [], [], []
        for code in np.unique(cut):
            at = cut == code
            columns = np.column_stack([np.ones(at.sum()), t[at], x[at]])
            one = sm.OLS(y[at], columns).fit(cov_type="HC3", use_t=True)
            groups.append(estimate(one.params[1], one.bse[1], one.df_resid))
            of_place.append(estimate(*sandwich(columns, y[at], 1, "CR2", place[at])))
            test = stats.ttest_ind(y[at & (t == 1)], y[at & (t == 0)], equal_var=False)
            ends = test.confidence_interval()
            welch.append({"ci_low": ends.low, "ci_high": ends.high, "n": int(at.sum())})
        found["modifiers"][name] = {
            "slope": estimate(fit.params[1], fit.bse[1], fit.df_resid),
            "slope_place": estimate(*sandwich(design, y, 1, "CR2", place)),
            "groups": groups,
            "groups_place": of_place,
            "welch": welch,
        }
    z, beta = fitted(x[:, None], t)
    e = np.clip(special.expit(z @ beta), 0.05, 0.95)
    pooled = np.sqrt((x[t == 1].var(ddof=1) + x[t == 0].var(ddof=1)) / 2)
    for name, one, zero in (
        ("ate", 1 / e, 1 / (1 - e)),
        ("att", 1 + 0 * e, e / (1 - e)),
        ("atc", (1 - e) / e, 1 + 0 * e),
        ("ato", 1 - e, e),
    ):
        one, zero = one * t, zero * (1 - t)
        found["balance"][name] = {
            "smd_weighted": ((one @ x) / one.sum() - (zero @ x) / zero.sum()) / pooled,
            "effective_treatment": one.sum() ** 2 / (one**2).sum(),
            "effective_control": zero.sum() ** 2 / (zero**2).sum(),
        }
    clustered = weighted(x[:, None], t, y, "ate", (0.05, 0.95), place)
    found["weighting"] = estimate(clustered["estimate"], clustered["standard_error"], 23)
    return found


def correlations():
    """Columns with ties, a group column, and some that are missing."""
    n = 90
    rows = []
    for i in range(n):
        a = noise(i, 0)
        b = a // 2 + noise(i, 1) // 2
        c = -(a**3) // 1000 + noise(i, 2)
        d = noise(i, 3) % 4
        missing = i % 9 == 2
        rows.append((["x", "y", ""][i % 3], a, b, c, d, "" if missing else a + noise(i, 5)))
    frame = pd.DataFrame(rows, columns=["kind", "a", "b", "c", "d", "e"])

    def of(frame, x, y, method, alpha=0.05):
        two = frame[[x, y]].apply(pd.to_numeric).dropna()
        u, v, m = two[x].values, two[y].values, len(two)
        found = {
            "pearson": stats.pearsonr,
            "spearman": stats.spearmanr,
            "kendall": stats.kendalltau,
        }[method](u, v)
        r = found.statistic
        se = {
            "pearson": np.sqrt(1 / (m - 3)),
            "spearman": np.sqrt((1 + r * r / 2) / (m - 3)),
            "kendall": np.sqrt(0.437 / (m - 4)),
        }[method]
        half = stats.norm.ppf(1 - alpha / 2) * se
        return {
            "coefficient": r,
            "p_value": found.pvalue,
            "n": m,
            "ci_low": np.tanh(np.arctanh(r) - half),
            "ci_high": np.tanh(np.arctanh(r) + half),
        }

    result = {"csv": frame.to_csv(index=False)}
    for method in ("pearson", "spearman", "kendall"):
        whole = [
            {"outcome": x, "variable": y, **of(frame, x, y, method)} for x in "ab" for y in "cde"
        ]
        groups = [
            {"kind": kind or None, "outcome": "a", "variable": y, **of(part, "a", y, method)}
            for kind, part in frame.groupby("kind")
            for y in "bd"
        ]
        result[method] = {
            "all": whole,
            "groups": groups,
            "level_99": of(frame, "a", "b", method, 0.01),
        }
    # So near to a line that the p-value is far out in the tail.
    tail = pd.DataFrame({"u": range(400), "v": [3 * i + noise(i, 0) * 4 for i in range(400)]})
    result["tail"] = {"csv": tail.to_csv(index=False)}
    for method in ("pearson", "spearman", "kendall"):
        result["tail"][method] = of(tail, "u", "v", method)
    # No ties: Kendall's p is exact.
    few = pd.DataFrame({"u": range(12), "v": [3, 1, 2, 5, 4, 9, 6, 8, 7, 12, 10, 11]})
    result["few"] = {"csv": few.to_csv(index=False), "kendall": of(few, "u", "v", "kendall")}
    return result


def partial():
    """A chain x -> m -> y beside an arm: what is left of x and y given m."""
    n = 120
    rows = []
    for i in range(n):
        x = noise(i, 0)
        m = x + noise(i, 1)
        y = 2 * m + noise(i, 2)
        rows.append(("t" if noise(i, 3) > 50 else "c", x, m, y, noise(i, 4)))
    frame = pd.DataFrame(rows, columns=["arm", "x", "m", "y", "w"])
    numbers = frame.assign(arm=frame.arm == "t").astype(float)

    def of(a, b, given):
        z = sm.add_constant(numbers[given]) if given else np.ones((n, 1))
        u, v = (sm.OLS(numbers[c], z).fit().resid for c in (a, b))
        r = np.corrcoef(u, v)[0, 1]
        df = n - 2 - len(given)
        t = r * np.sqrt(df / (1 - r * r))
        return {"coefficient": r, "p_value": 2 * stats.t.sf(abs(t), df)}

    return {
        "csv": frame.to_csv(index=False),
        "x y | m": of("x", "y", ["m"]),
        "w x": of("w", "x", []),
        "w y": of("w", "y", []),
        "m w": of("m", "w", []),
        "arm x": of("arm", "x", []),
        "arm m": of("arm", "m", []),
        "arm w": of("arm", "w", []),
    }


def regressions():
    """Standard errors of the data sets in `causal/`, by the decomposition of scaled columns in long
    doubles: the files there have them from the normal equations, with seven digits."""
    found = {}
    for name in ("nhefs", "nsw_dw", "ihdp_A_seed0", "formula_splitmix42"):
        folder = Path(__file__).parent / "causal"
        meta = json.loads((folder / f"{name}.json").read_text())["meta"]
        frame = pd.read_csv(folder / f"{name}.csv")
        t = frame[meta["treatment"]].values.astype(np.longdouble)
        y = frame[meta["outcome"]].values.astype(np.longdouble)
        w = frame[meta["covariates"]].values.astype(np.longdouble)
        n, centred = len(y), w - w.mean(0)
        for kind, x in (
            ("ols", [t[:, None], w]),
            ("lin", [t[:, None], centred, t[:, None] * centred]),
        ):
            x = np.column_stack([np.ones((n, 1), np.longdouble), *x])
            scale = np.sqrt((x**2).mean(0))
            q, k = x / scale, x.shape[1]
            r = np.zeros((k, k), np.longdouble)
            for a in range(k):
                for _ in range(2):
                    for b in range(a):
                        along = q[:, b] @ q[:, a]
                        r[b, a] += along
                        q[:, a] -= along * q[:, b]
                r[a, a] = np.sqrt(q[:, a] @ q[:, a])
                q[:, a] /= r[a, a]
            inverse = np.zeros((k, k), np.longdouble)
            for c in range(k):
                for a in range(c, -1, -1):
                    rest = r[a, a + 1 : c + 1] @ inverse[a + 1 : c + 1, c]
                    inverse[a, c] = ((a == c) - rest) / r[a, a]
            row = inverse[1]
            u = y - q @ (q.T @ y)
            u = u - q @ (q.T @ u)
            h = (q**2).sum(1)
            error = {"classic": np.sqrt((u @ u) / (n - k) * (row @ row))}
            kinds = {"HC0": u, "HC1": u * np.sqrt(np.longdouble(n) / (n - k))}
            if h.max() < 1 - 1e-9:
                kinds |= {"HC2": u / np.sqrt(1 - h), "HC3": u / (1 - h)}
            for se, factor in kinds.items():
                error[se] = np.sqrt(((q @ row * factor) ** 2).sum())
            found.setdefault(name, {})[kind] = {
                "estimate": float(row @ (q.T @ y) / scale[1]),
                **{se: float(value / scale[1]) for se, value in error.items()},
            }
    return found


def propensities():
    """Standard errors of estimators by propensity, on the data sets in `causal/`."""
    found = {}
    for name, cluster in (("nhefs", "age"), ("nsw_dw", "age"), ("ihdp_A_seed0", None)):
        folder = Path(__file__).parent / "causal"
        meta = json.loads((folder / f"{name}.json").read_text())["meta"]
        frame = pd.read_csv(folder / f"{name}.csv")
        t, y = (frame[meta[role]].values.astype(float) for role in ("treatment", "outcome"))
        x = frame[meta["covariates"]].values.astype(float)
        one = {"cluster": cluster, "matching": matched(x, t, y)}
        for estimand in ("ate", "att", "atc", "ato"):
            alone = np.arange(len(y))
            # Only at the ends where the weights of the estimand have no bound.
            clip = {"ate": (0.05, 0.95), "att": (0, 0.95), "atc": (0.05, 1), "ato": (0, 1)}[
                estimand
            ]
            one[estimand] = weighted(x, t, y, estimand, clip, alone)
            if cluster:
                groups = frame[cluster].values
                one[estimand + "_clustered"] = weighted(x, t, y, estimand, clip, groups)
        found[name] = one
    return found


def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value.item() if hasattr(value, "item") else value


found = plain(
    {
        "three_arms": three_arms(),
        "samples": samples(),
        "independent": independent(),
        "confounded": confounded(),
        "correlations": correlations(),
        "partial": partial(),
        "regressions": regressions(),
        "propensities": propensities(),
    }
)
(HERE / "regress.json").write_text(json.dumps(found, indent=1) + "\n")
