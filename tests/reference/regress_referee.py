#!/usr/bin/env python3
"""Regenerates regress_referee.json: what peers say where `regress` is asked what referees ask.

    python3 tests/reference/regress_referee.py

The pinned peers are installed into a virtual environment at first use (`in_venv`, harness.py). The
data are in the file, seeded:

- `rare`: a 0/1 outcome of 20 of 2,000 rows against 58 of 2,000. Risk ratio and its interval by
  statsmodels (Katz); E-values by VanderWeele and Ding's formula, RR + sqrt(RR (RR - 1)).
- `adjusted`: a 0/1 outcome, a confounder, and units. Risk ratios with delta-method intervals: of
  the standardised risks of statsmodels' OLS, of its inverse propensity weights (GMM), and of pairs.
- `valid`, `invalid`: two instruments, of which the second one has an effect of its own or not. Two
  stages, Sargan's test and Hansen's J by linearmodels; Anderson and Rubin's interval by inverting
  statsmodels' Wald test of the instruments in y - effect * t.
- `strong_confounder`: an instrument that says little. t statistics of the reduced form and of the
  first stage by statsmodels; robustness values by Cinelli and Hazlett's formula.
- `attrition`: units that lack an arm. Manski's and Lee's bounds from their definitions in numpy,
  Imbens and Manski's interval by a root of scipy.
- `overlap`: scores of which most are extreme; the same on Crump's range by statsmodels.
"""

import json
import math
import pathlib
import random
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))
from harness import in_venv, pinned  # noqa: E402

PINS = {
    "statsmodels": "0.14.5",
    "linearmodels": "7.0",
    "scipy": "1.16.3",
    "numpy": "2.4.6",
    "pandas": "2.3.3",
}
in_venv(*pinned(PINS))

import numpy  # noqa: E402
import pandas  # noqa: E402
import statsmodels.api as sm  # noqa: E402
from linearmodels.iv import IV2SLS, IVGMM  # noqa: E402
from scipy import optimize, stats  # noqa: E402
from statsmodels.stats.proportion import confint_proportions_2indep  # noqa: E402
from statsmodels.treatment.treatment_effects import TreatmentEffect  # noqa: E402


def text(frame: pandas.DataFrame) -> str:
    return frame.to_csv(index=False)


def evalue(ratio: float) -> float:
    ratio = max(ratio, 1 / ratio)
    return ratio + math.sqrt(ratio * (ratio - 1))


def of_ratio(ratio: float, low: float, high: float) -> dict:
    limit = 1.0 if low <= 1 <= high else evalue(low if ratio > 1 else high)
    return {
        "risk_ratio": ratio,
        "risk_ratio_low": low,
        "risk_ratio_high": high,
        "evalue": evalue(ratio),
        "evalue_ci": limit,
    }


def of_log(ratio: float, error: float, quantile: float) -> dict:
    half = quantile * error
    return of_ratio(ratio, ratio * math.exp(-half), ratio * math.exp(half))


def rare() -> dict:
    low, high = confint_proportions_2indep(58, 2000, 20, 2000, method="log", compare="ratio")
    return of_ratio(58 / 20, float(low), float(high))


def adjusted() -> dict:
    draw = random.Random(1)
    rows = []
    for unit in range(400):
        x = draw.gauss(0, 1)
        arm = draw.random() < 1 / (1 + math.exp(-0.5 * x))
        risks = [1 / (1 + math.exp(2.0 - x)), 1 / (1 + math.exp(1.2 - x))]
        y = [int(draw.random() < risk) for risk in risks]
        rows.append((unit, "t" if arm else "c", round(x, 4), y[arm], *y))
    table = pandas.DataFrame(rows, columns=["row", "arm", "x", "y", "y0", "y1"])
    t, y, x = (table.arm == "t").astype(float), table.y.astype(float), table.x
    # Standardised risks: everybody's x at its mean, which is exact in a linear model.
    fit = sm.OLS(y, numpy.column_stack([numpy.ones(400), t, x - x.mean()])).fit(
        cov_type="HC2", use_t=True
    )
    control, treated = fit.params.iloc[0], fit.params.iloc[0] + fit.params.iloc[1]
    gradient = numpy.array([1 / treated - 1 / control, 1 / treated, 0])
    error = math.sqrt(gradient @ fit.cov_params() @ gradient)
    ols = of_log(treated / control, error, stats.t.ppf(0.975, fit.df_resid))
    ols |= {"risk_treatment": float(treated), "risk_control": float(control)}
    design = sm.add_constant(x)
    score = sm.Logit(t, design).fit(disp=0, tol=1e-14, method="newton")
    effect = TreatmentEffect(sm.OLS(y, design), t.astype(int), results_select=score).ipw()
    # Moments: the two means and the scores; the covariance from centred differences.
    moments = effect.results_gmm.model.momcond
    start = numpy.array(effect.start_params, float)
    from statsmodels.tools.numdiff import approx_fprime

    at = moments(start)
    slopes = approx_fprime(start, lambda p: moments(p).mean(0), centered=True)
    bread = numpy.linalg.inv(slopes)
    covariance = bread @ (at.T @ at) @ bread.T / 400**2
    ate, control = start[:2]
    treated = ate + control
    gradient = numpy.array([1 / treated, 1 / treated - 1 / control])
    error = math.sqrt(gradient @ covariance[:2, :2] @ gradient)
    weighting = of_log(treated / control, error, stats.norm.ppf(0.975))
    linearised = table.y1 / table.y1.mean() - table.y0 / table.y0.mean()
    error = linearised.std(ddof=1) / 20
    paired = of_log(table.y1.mean() / table.y0.mean(), error, stats.t.ppf(0.975, 399))
    long = pandas.concat(
        [
            table.assign(unit=table.row, arm=arm, y=table[column])[["unit", "arm", "y"]]
            for arm, column in (("c", "y0"), ("t", "y1"))
        ]
    )
    return {
        "csv": text(table[["arm", "y", "x"]]),
        "pairs_csv": text(long),
        "ols": ols,
        "weighting": weighting,
        "paired": paired,
    }


def anderson_rubin(y, t, z, x, kind: str, clusters, alpha=0.05) -> dict | None:
    """The ends at which the Wald test of the instruments has p = alpha; none if it always rejects.
    The sets of these data are intervals within -4 and 4."""
    design = numpy.column_stack([numpy.ones(len(y)), x, z])
    tested = numpy.eye(design.shape[1])[-z.shape[1] :]

    def p(effect: float) -> float:
        model = sm.OLS(y - effect * t, design)
        if kind == "CR1":
            fit = model.fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
        elif kind == "classic":
            fit = model.fit()
        else:
            fit = model.fit(cov_type=kind, use_t=True)
        return float(fit.f_test(tested).pvalue)

    grid = numpy.linspace(-4, 4, 801)
    inside = [effect for effect in grid if p(effect) >= alpha]
    if not inside:
        return None
    assert inside[0] > -4 and inside[-1] < 4 and len(inside) > 2, (kind, inside[:1])
    ends = [
        optimize.brentq(lambda e: p(e) - alpha, inside[at] - sign * 0.01, inside[at], xtol=1e-14)
        for at, sign in ((0, 1), (-1, -1))
    ]
    return {"p_zero": p(0.0), "low": ends[0], "high": ends[1]}


def instruments(second: float) -> dict:
    draw = random.Random(3)
    rows = []
    for row in range(2000):
        z, w, x, hidden = (draw.gauss(0, 1) for _ in range(4))
        t = int(0.6 * z + 0.6 * w + 0.3 * x + hidden + draw.gauss(0, 1) > 0)
        y = 1.0 * hidden + 0.5 * x + second * w + draw.gauss(0, 1) * (1 + 0.5 * abs(z))
        rows.append(("t" if t else "c", *(round(v, 4) for v in (y, z, w, x)), f"k{row % 40}"))
    table = pandas.DataFrame(rows, columns=["arm", "y", "z", "w", "x", "place"])
    t = (table.arm == "t").astype(float).rename("t")
    controls = sm.add_constant(table[["x"]])
    given, codes = table[["z", "w"]], table.place.str[1:].astype(int)
    two = IV2SLS(table.y, controls, t, given).fit(cov_type="unadjusted", debiased=True)
    robust = IVGMM(table.y, controls, t, given, weight_type="robust").fit(iter_limit=2)
    clustered = IVGMM(table.y, controls, t, given, weight_type="clustered", clusters=codes)
    clustered = clustered.fit(iter_limit=2)
    y, x = table.y.to_numpy(), table[["x"]].to_numpy()
    sets = {
        kind: anderson_rubin(y, t.to_numpy(), z.to_numpy(), x, kind, codes)
        for kind in ("classic", "HC1", "HC3", "CR1")
        for z in [given]
    }
    alone = {
        kind: anderson_rubin(y, t.to_numpy(), table[["z"]].to_numpy(), x, kind, codes)
        for kind in ("classic", "HC1", "CR1")
    }
    return {
        "csv": text(table),
        "estimate": float(two.params["t"]),
        "sargan": {"chi2": float(two.sargan.stat), "p": float(two.sargan.pval)},
        "hansen": {"chi2": float(robust.j_stat.stat), "p": float(robust.j_stat.pval)},
        "hansen_clustered": {
            "chi2": float(clustered.j_stat.stat),
            "p": float(clustered.j_stat.pval),
        },
        "anderson_rubin": sets,
        "anderson_rubin_z": alone,
    }


def robustness(t: float, df: float, alpha: float = 0.05) -> dict:
    def value(f: float) -> float:
        return (math.sqrt(f**4 + 4 * f**2) - f**2) / 2 if f > 0 else 0.0

    f = abs(t) / math.sqrt(df)
    critical = stats.t.ppf(1 - alpha / 2, df - 1) / math.sqrt(df - 1)
    return {
        "partial_r2": t * t / (t * t + df),
        "value": value(f),
        "value_alpha": value(f - critical),
        "extreme_alpha": max(f * f - critical**2, 0) / (1 + f * f),
    }


def strong_confounder() -> dict:
    draw = random.Random(39)
    rows = []
    for _ in range(600):
        z, x, hidden = (draw.gauss(0, 1) for _ in range(3))
        t = int(0.8 * z + x + 1.5 * hidden + draw.gauss(0, 1) > 0)
        y = 0.1 * t + x + 1.5 * hidden + draw.gauss(0, 1)
        rows.append(("t" if t else "c", *(round(v, 4) for v in (y, z, x))))
    table = pandas.DataFrame(rows, columns=["arm", "y", "z", "x"])
    t = (table.arm == "t").astype(float).rename("t")
    design = sm.add_constant(table[["z", "x"]])
    two = IV2SLS(table.y, sm.add_constant(table[["x"]]), t, table[["z"]])
    two = two.fit(cov_type="unadjusted", debiased=True)
    stages = {
        name: sm.OLS(target, design).fit() for name, target in (("reduced", table.y), ("first", t))
    }
    ols = sm.OLS(table.y, sm.add_constant(pandas.concat([t, table.x], axis=1))).fit()
    made = {name: robustness(fit.tvalues["z"], fit.df_resid) for name, fit in stages.items()}
    return {
        "csv": text(table),
        "estimate": float(two.params["t"]),
        "p": float(two.pvalues["t"]),
        "ols": robustness(ols.tvalues["t"], ols.df_resid),
        **made,
    }


def imbens_manski(low, high, errors, alpha=0.05) -> list:
    apart = (high - low) / max(errors)
    c = optimize.brentq(
        lambda c: stats.norm.cdf(c + apart) - stats.norm.cdf(-c) - (1 - alpha), 0, 5, xtol=1e-15
    )
    return [float(low - c * errors[0]), float(high + c * errors[1])]


def attrition() -> dict:
    draw = random.Random(7)
    rows, units = [], []
    for unit in range(60):
        base = draw.random()
        y = {"c": round(0.6 * base, 4), "t": round(min(1.0, 0.6 * base + 0.3 * draw.random()), 4)}
        lacks = "t" if unit % 6 == 0 else None
        for arm in ("c", "t"):
            if arm != lacks:
                rows.append((f"u{unit}", arm, y[arm]))
        units.append((None if lacks else y["t"], y["c"]))
    ends = []
    for t, c in ((0.0, 1.0), (1.0, 0.0)):
        d = numpy.array([(t if a is None else a) - (c if b is None else b) for a, b in units])
        ends.append((d.mean(), d.std(ddof=1) / math.sqrt(60)))
    (low, low_error), (high, high_error) = ends
    complete = numpy.array([a - b for a, b in units if a is not None])
    controls = sorted(b for _, b in units)
    mean = numpy.mean([a for a, _ in units if a is not None])
    # 50 of 60 are there under the treatment: 10 of the 60 controls are left out at either end.
    return {
        "csv": text(pandas.DataFrame(rows, columns=["unit", "arm", "y"])),
        "complete": {
            "estimate": float(complete.mean()),
            "standard_error": float(complete.std(ddof=1) / math.sqrt(50)),
        },
        "manski": [float(low), float(high)],
        "manski_ci": imbens_manski(low, high, (low_error, high_error)),
        "lee": [float(mean - numpy.mean(controls[10:])), float(mean - numpy.mean(controls[:50]))],
    }


def overlap() -> dict:
    draw = random.Random(11)
    rows = []
    for _ in range(2000):
        x = draw.gauss(0, 1)
        t = int(draw.random() < 1 / (1 + math.exp(-5 * x)))
        rows.append(("t" if t else "c", round(10 * t + 8 * x + draw.gauss(0, 1), 4), round(x, 4)))
    table = pandas.DataFrame(rows, columns=["arm", "y", "x"])

    def scores(part):
        t = (part.arm == "t").astype(float)
        fit = sm.Logit(t, sm.add_constant(part[["x"]])).fit(disp=0, tol=1e-14, method="newton")
        return t, fit.predict()

    def weighted(part, overlap=False):
        t, e = scores(part)
        # The weights of the overlap have a bound, and need no clipping.
        e = e if overlap else numpy.clip(e, 0.05, 0.95)
        weights = numpy.where(t == 1, 1 / e, 1 / (1 - e)) * (e * (1 - e) if overlap else 1)
        means = [numpy.average(part.y[t == arm], weights=weights[t == arm]) for arm in (1, 0)]
        return float(means[0] - means[1])

    _, e = scores(table)
    inside = table[(e >= 0.1) & (e <= 0.9)]
    return {
        "csv": text(table),
        "clipped": int(((e < 0.05) | (e > 0.95)).sum()),
        "clipped_aipw": int(((e < 0.01) | (e > 0.99)).sum()),
        "clipped_aipw_att": int((e > 0.99).sum()),
        "weighting": weighted(table),
        "ato": weighted(table, overlap=True),
        "trimmed": weighted(inside),
        "n_trimmed": len(inside),
    }


made = {
    "peers": PINS,
    "rare": rare(),
    "adjusted": adjusted(),
    "valid": instruments(0.0),
    "invalid": instruments(0.8),
    "strong_confounder": strong_confounder(),
    "attrition": attrition(),
    "overlap": overlap(),
}
(HERE / "regress_referee.json").write_text(json.dumps(made, indent=1) + "\n")
