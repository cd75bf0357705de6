#!/usr/bin/env python3
"""Regenerates causal_peers.json: what statistics packages give on the data of causal/*.csv.

    python3 tests/reference/causal_peers.py
    python3 tests/reference/causal_peers.py --check

The pinned peers are installed into a virtual environment at first use (`in_venv`, harness.py).
causal/*.json, which the tests of src/causal compare with, come from a reference implementation
in numpy. This script gives the same numbers from packages that others wrote, wherever one
defines them: statsmodels (OLS with its sandwiches, GLM, treatment effects, corrections of
p-values), scipy (Welch, pairs, correlations, tails), scikit-learn (penalised logit, nearest
neighbours) and linearmodels (instruments). `files` has the structure and the names of
causal/*.json; besides, it has what the latter lack (clusters, intervals).

With `--check` it writes nothing: it computes all again, compares with causal/*.json and with
the committed causal_peers.json, and prints the largest relative difference per field. Exit
code 1 if one is above 1e-9, or 1e-6 where an optimiser takes part.

The standard errors of least squares in nhefs.json and nsw_dw.json are right to 1e-7 only: they
were computed by inverting the squared design of raw columns. Here they are right to 1e-12 (as
arithmetic of 50 digits tells), so tests compare with these; `--check` allows 1e-6 there.

Conventions: clusters are the row index modulo n // 5. Intervals are those of 95 %, with
Student's t of the residual degrees of freedom, or with CR1 of the clusters less one. The moments
of treatment effects are differentiated numerically, which needs covariates of a like size: they
get standardised ones, which changes no effect and no standard error.
"""

import argparse
import csv
import json
import math
import pathlib
import sys
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))
from causal_differences import compared, report  # noqa: E402
from harness import Verdict, in_venv, pinned  # noqa: E402

PINS = {
    "numpy": "2.4.6",
    "pandas": "3.1.1",
    "scipy": "1.15.3",
    "statsmodels": "0.15.0",
    "scikit-learn": "1.9.1",
    "linearmodels": "7.1",
}
OUT = pathlib.Path(__file__).with_suffix(".json")
CAUSAL = pathlib.Path(__file__).with_name("causal")
STUDIES = ["formula_splitmix42", "ihdp_A_seed0", "nhefs", "nsw_dw"]
SANDWICHES = ["HC0", "HC1", "HC2", "HC3"]


def read(name: str) -> dict:
    """The columns of a table; every number is the double nearest to its text."""
    import numpy

    with (CAUSAL / f"{name}.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {column: numpy.array([float(row[column]) for row in rows]) for column in rows[0]}


def interval(pair) -> list:
    return [float(bound) for bound in pair]


def naive(t, y) -> dict:
    from scipy import stats

    test = stats.ttest_ind(y[t == 1], y[t == 0], equal_var=False)
    ate = y[t == 1].mean() - y[t == 0].mean()
    return {
        "ate": float(ate),
        "se_welch": float(ate / test.statistic),
        "df": float(test.df),
        "p": float(test.pvalue),
        "ci": interval(test.confidence_interval(0.95)),
    }


def least_squares(design, y, clusters, coefficients: bool) -> dict:
    """The effect, in the second column of the design, with every sandwich."""
    import statsmodels.api as sm

    model = sm.OLS(y, design)
    fit = model.fit(method="qr")
    leverage = fit.get_influence().hat_matrix_diag
    fits = {"classic": fit}
    for kind in SANDWICHES:
        if kind in ("HC2", "HC3") and leverage.max() > 1 - 1e-9:
            continue  # a row that is fitted exactly
        fits[kind] = model.fit(method="qr", cov_type=kind, use_t=True)
    fits["CR1"] = model.fit(
        method="qr", cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    made = {"ate": float(fit.params[1]), "max_leverage": float(leverage.max())}
    for kind, fit in fits.items():
        made[f"se_{kind}"] = float(fit.bse[1])
        made[f"p_{kind}"] = float(fit.pvalues[1])
        made[f"ci_{kind}"] = interval(fit.conf_int(0.05)[1])
    if coefficients:
        made["coef"] = fits["classic"].params.tolist()
    return made


def hajek(t, y, weights) -> float:
    """The difference of weighted means, as a weighted regression."""
    import numpy
    import statsmodels.api as sm

    design = numpy.column_stack([numpy.ones(len(t)), t])
    return float(sm.WLS(y, design, weights=weights).fit(method="qr").params[1])


def weighting(e, t, y) -> dict:
    odds = e / (1 - e)
    return {
        "ate_hajek": hajek(t, y, t / e + (1 - t) / (1 - e)),
        "att": hajek(t, y, t + (1 - t) * odds),
        "atc": hajek(t, y, t / odds + (1 - t)),
        "ato_overlap": hajek(t, y, t * (1 - e) + (1 - t) * e),
    }


def matching(e, t, y) -> dict:
    """One nearest neighbour with replacement, on scores that are all distinct."""
    from sklearn.neighbors import NearestNeighbors

    def matched(asked, given):
        found = NearestNeighbors(n_neighbors=1).fit(e[given].reshape(-1, 1))
        return y[given][found.kneighbors(e[asked].reshape(-1, 1))[1].ravel()]

    one, other = t == 1, t == 0
    att = (y[one] - matched(one, other)).mean()
    atc = (matched(other, one) - y[other]).mean()
    return {
        "att": float(att),
        "atc": float(atc),
        "ate": float((att * one.sum() + atc * other.sum()) / len(t)),
    }


def propensity(e, intercept, coef, x, t, y) -> dict:
    import numpy
    from sklearn.metrics import roc_auc_score
    from statsmodels.stats.weightstats import DescrStatsW

    clipped = numpy.clip(e, 0.05, 0.95)
    made = {
        "intercept": float(intercept),
        "coef": [float(c) for c in coef],
        "min": float(e.min()),
        "max": float(e.max()),
        "quantiles_1_25_50_75_99": numpy.quantile(e, [0.01, 0.25, 0.5, 0.75, 0.99]).tolist(),
        "n_outside_0.05_0.95": int(((e < 0.05) | (e > 0.95)).sum()),
        "auc": float(roc_auc_score(t, e)),
        "ipw_noclip": weighting(e, t, y),
        "ipw_clip_05_95": weighting(clipped, t, y),
    }
    rounded = numpy.unique(numpy.round(e, 12))
    if len(rounded) == len(e):
        made["match_tie_averaged"] = matching(e, t, y)
    weights = t / clipped + (1 - t) / (1 - clipped)
    after = made["smd_after_ate_weights"] = {}
    for name, column in x.items():
        means = [DescrStatsW(column[t == k], weights[t == k]).mean for k in (1, 0)]
        spread = [DescrStatsW(column[t == k], ddof=1).var for k in (1, 0)]
        after[name] = float((means[0] - means[1]) / math.sqrt(sum(spread) / 2))
    return made


def propensities(x, t, y) -> dict:
    """By scikit-learn with C=1, and unpenalised by statsmodels."""
    import numpy
    import statsmodels.api as sm
    from sklearn.linear_model import LogisticRegression

    columns = numpy.column_stack(list(x.values()))
    ridge = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-14, max_iter=10_000)
    ridge.fit(columns, t)
    # Covariates of a like size; the coefficients are given back on the raw scale.
    middle, spread = columns.mean(0), columns.std(0)
    glm = sm.GLM(t, sm.add_constant((columns - middle) / spread), family=sm.families.Binomial())
    fit = glm.fit(tol=1e-14, maxiter=200)
    to_raw = numpy.eye(len(fit.params))
    to_raw[1:, 1:] /= spread[:, None]
    to_raw[0, 1:] = -middle / spread
    raw = to_raw @ fit.params
    errors = numpy.sqrt(numpy.diag(to_raw @ fit.cov_params() @ to_raw.T))
    made = {
        "ridge_C1": propensity(
            ridge.predict_proba(columns)[:, 1], ridge.intercept_[0], ridge.coef_[0], x, t, y
        ),
        "mle": propensity(fit.predict(), raw[0], raw[1:], x, t, y),
    }
    made["mle"]["statsmodels_bse"] = errors.tolist()
    made["mle"]["statsmodels_loglik"] = float(fit.llf)
    return made


def treatment_effects(x, t, y) -> dict:
    """statsmodels' moment conditions at its own estimates, with the sandwich of them all.

    Its standard errors are not taken as they come: it searches on from the solution, and
    differentiates by one-sided differences, which costs digits."""
    import numpy
    import statsmodels.api as sm
    from statsmodels.tools.numdiff import approx_fprime
    from statsmodels.treatment.treatment_effects import TreatmentEffect

    columns = numpy.column_stack(list(x.values()))
    design = sm.add_constant((columns - columns.mean(0)) / columns.std(0))
    select = sm.Logit(t, design).fit(method="newton", disp=0, tol=1e-14, maxiter=200)
    effect = TreatmentEffect(sm.OLS(y, design), t.astype(int), results_select=select)
    made = {}
    for name in ("ra", "ipw", "aipw"):
        found = getattr(effect, name)()
        moments = found.results_gmm.model.momcond
        params = numpy.array(found.start_params, float)
        made[name] = {"ate": float(params[0]), "pom0": float(params[1])}
        at = moments(params)
        if abs(at.mean(0)).max() > 1e-9 * max(1.0, abs(at).max()):
            continue  # the peer bounds propensities in its conditions, not in its estimate
        slopes = approx_fprime(params, lambda p, moments=moments: moments(p).mean(0), centered=True)
        bread = numpy.linalg.inv(slopes)
        covariance = bread @ (at.T @ at) @ bread.T / len(t) ** 2
        made[name]["se"] = float(math.sqrt(covariance[0, 0]))
    return made


def balance(x, t) -> dict:
    from scipy import stats
    from statsmodels.stats.weightstats import DescrStatsW

    made = {}
    for name, column in x.items():
        one, other = (DescrStatsW(column[t == k], ddof=1) for k in (1, 0))
        made[name] = {
            "smd": float((one.mean - other.mean) / math.sqrt((one.var + other.var) / 2)),
            "variance_ratio": float(one.var / other.var),
            "ks": float(stats.ks_2samp(column[t == 1], column[t == 0]).statistic),
        }
    return made


def study(name: str) -> dict:
    import numpy

    meta = json.loads((CAUSAL / f"{name}.json").read_text())["meta"]
    rows = read(name)
    t, y = rows[meta["treatment"]], rows[meta["outcome"]]
    x = {column: rows[column] for column in meta["covariates"]}
    columns = numpy.column_stack(list(x.values()))
    ones = numpy.ones(len(t))
    centred = columns - columns.mean(0)
    interacted = numpy.column_stack([ones, t, centred, centred * t[:, None]])
    clusters = numpy.arange(len(t)) % (len(t) // 5)
    ols = least_squares(numpy.column_stack([ones, t, columns]), y, clusters, True)
    squared = (ols["ate"] / ols["se_classic"]) ** 2
    freedom = len(t) - 2 - columns.shape[1]
    return {
        "naive": naive(t, y),
        "ols": ols,
        "lin2013": least_squares(interacted, y, clusters, False),
        "sensemakr": {"partial_r2": squared / (squared + freedom), "partial_f2": squared / freedom},
        "balance": balance(x, t),
        "propensity": propensities(x, t, y),
        "teffects_stack_logit": treatment_effects(x, t, y),
    }


def instruments() -> dict:
    import pandas
    import statsmodels.api as sm
    from linearmodels.iv import IV2SLS

    rows = pandas.DataFrame(read("card_iv"))
    controls = sm.add_constant(rows[["exper", "black", "south", "married", "smsa"]])
    y, endogenous, given = rows["lwage"], rows["educ"], rows["nearc4"]
    model = IV2SLS(y, controls, endogenous, given)
    classic = model.fit(cov_type="unadjusted", debiased=True)
    robust = model.fit(cov_type="robust", debiased=False)
    first = sm.OLS(endogenous, controls.assign(nearc4=given)).fit(method="qr")
    return {
        "ols": float(sm.OLS(y, controls.assign(educ=endogenous)).fit(method="qr").params["educ"]),
        "tsls": float(classic.params["educ"]),
        "se_classic_n-k": float(classic.std_errors["educ"]),
        "p_classic_n-k": float(classic.pvalues["educ"]),
        "ci_classic_n-k": interval(classic.conf_int().loc["educ"]),
        "se_HC0": float(robust.std_errors["educ"]),
        "first_stage_coef": float(first.params["nearc4"]),
        "first_stage_F": float(first.tvalues["nearc4"] ** 2),
    }


def multiplicity() -> dict:
    from statsmodels.stats.multitest import multipletests

    p = json.loads((CAUSAL / "multiplicity.json").read_text())["p"]
    methods = ["bonferroni", "holm", "simes-hochberg", "hommel", "fdr_bh", "fdr_by"]
    return {method: multipletests(p, method=method)[1].tolist() for method in methods}


def closed_form() -> dict:
    import numpy
    from scipy import stats

    lead = json.loads((CAUSAL / "closed_form.json").read_text())["lead_33_pairs"]
    one, other = numpy.array(lead["treated"], float), numpy.array(lead["control"], float)
    tiny = json.loads((CAUSAL / "closed_form.json").read_text())["rosenbaum_tiny"]["d"]

    def ranks(d):
        d = numpy.asarray(d, float)
        test = stats.wilcoxon(
            d[d != 0], alternative="greater", correction=False, method="asymptotic"
        )
        return float(test.pvalue)

    return {
        "mde80_z": float(stats.norm.ppf(0.975) + stats.norm.ppf(0.8)),
        "rosenbaum_tiny": {"p": {"1": ranks(tiny)}},
        "lead_33_pairs": {"p_upper": {"1": ranks(one - other)}},
    }


def pairs() -> dict:
    """A t test of pairs, and the same as a regression on the differences."""
    import numpy
    import statsmodels.api as sm
    from scipy import stats

    lead = json.loads((CAUSAL / "closed_form.json").read_text())["lead_33_pairs"]
    one, other = numpy.array(lead["treated"], float), numpy.array(lead["control"], float)
    test = stats.ttest_rel(one, other)
    fit = sm.OLS(one - other, numpy.ones(len(one))).fit(method="qr")
    return {
        "n_pairs": len(one),
        "mean_diff": float((one - other).mean()),
        "se": float(fit.bse[0]),
        "t": float(test.statistic),
        "df": int(test.df),
        "p": float(test.pvalue),
        "ci": interval(test.confidence_interval(0.95)),
        "ci_of_regression": interval(fit.conf_int(0.05)[0]),
    }


def correlations() -> list:
    """[file, one column, other column, [pearson, p, ci], [spearman, p], [kendall tau-b, p]]."""
    from scipy import stats

    asked = [
        *(("formula_splitmix42", column, "y") for column in ("x1", "x2", "x3", "x4")),
        *(("nsw_dw", column, "re78") for column in ("age", "educ", "re74", "re75")),
        *(("nhefs", column, "wt82_71") for column in ("age", "smokeintensity", "wt71")),
    ]
    made = []
    for name, one, other in asked:
        rows = read(name)
        x, y = rows[one], rows[other]
        pearson = stats.pearsonr(x, y)
        spearman = stats.spearmanr(x, y)
        kendall = stats.kendalltau(x, y, variant="b", method="asymptotic")
        made.append(
            [
                name,
                one,
                other,
                [
                    float(pearson.statistic),
                    float(pearson.pvalue),
                    interval(pearson.confidence_interval(0.95)),
                ],
                [float(spearman.statistic), float(spearman.pvalue)],
                [float(kendall.statistic), float(kendall.pvalue)],
            ]
        )
    return made


def tails() -> dict:
    """Upper tails down to where doubles end, and quantiles."""
    from scipy import stats

    degrees = [1, 2, 3.5, 10, 30, 444, 2922, 1e6]
    return {
        # [t, degrees of freedom, P(T > t)]
        "t_upper": [
            [t, df, float(stats.t.sf(t, df))]
            for df in degrees
            for t in (-3.0, 0.0, 0.5, 1.96, 5.0, 12.312596200067377, 25.473209009772102, 37.0)
        ],
        "t_quantile": [
            [p, df, float(stats.t.ppf(p, df))] for df in degrees for p in (0.6, 0.95, 0.975, 0.9995)
        ],
        "normal_upper": [
            [z, float(stats.norm.sf(z))] for z in (-4.0, 0.0, 1.0, 1.96, 5.0, 10.0, 25.0, 37.5)
        ],
        "normal_quantile": [
            [p, float(stats.norm.ppf(p))] for p in (1e-300, 1e-20, 0.025, 0.5, 0.8, 0.975, 0.999999)
        ],
        "chi_squared_upper": [
            [x, df, float(stats.chi2.sf(x, df))]
            for df in (1, 2, 7)
            for x in (0.1, 3.84, 50.0, 435.15308832348234, 1200.0)
        ],
        "f_upper": [
            [f, one, other, float(stats.f.sf(f, one, other))]
            for one, other in ((1, 500), (4, 30))
            for f in (0.5, 2.0, 15.766661138649773, 300.0)
        ],
    }


def everything() -> dict:
    files = {name: study(name) for name in STUDIES}
    files |= {
        "card_iv": instruments(),
        "multiplicity": multiplicity(),
        "closed_form": closed_form(),
    }
    return {
        "peers": PINS,
        "clusters": "row index modulo n // 5",
        "files": files,
        "pairs": pairs(),
        "correlations": correlations(),
        "tails": tails(),
    }


def check(made: dict) -> int:
    verdict = Verdict()
    for name, peer in made["files"].items():
        reference = json.loads((CAUSAL / f"{name}.json").read_text())
        report(f"causal/{name}.json", compared(peer, reference), verdict, every=True)
    if verdict.check(OUT.exists(), f"there is no {OUT.name}"):
        committed = json.loads(OUT.read_text())
        report(OUT.name, compared(made, committed), verdict, every=False)
    return verdict.end()


def written(value, depth=0) -> str:
    """JSON with a line per entry of the upper levels."""
    if isinstance(value, dict) and depth < 4 and value:
        inner = ",\n".join(
            f"{' ' * (depth + 1)}{json.dumps(k)}: {written(v, depth + 1)}" for k, v in value.items()
        )
        return f"{{\n{inner}\n{' ' * depth}}}"
    return json.dumps(value)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    args = parser.parse_args()
    in_venv(*pinned(PINS))
    warnings.simplefilter("ignore")
    made = everything()
    if args.check:
        return check(made)
    OUT.write_text(written(made) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
