"""Which field of which table of ours is which field of table3.json.

Not a script of its own: `causal_published.py` compares what these tables name.
"""

import math

# The largest allowed differences. The standard errors of table3.json itself are exact to 8e-11
# (ols) and 5e-10 (lin) only, as extended precision shows.
CLOSED, ITERATED = 1e-9, 1e-6
OUTCOME = "y_levenshtein"
CONTRASTS = {"T1": ("T1", "control"), "T2": ("T2", "control"), "T2_vs_T1": ("T2", "T1")}
CONFOUNDERS = ["z_prompt_size", "z_n_whitespaces", "z_token_counts", "z_nloc"]
COVARIATES = [*CONFOUNDERS, "z_complexity", "z_n_ast_nodes", "z_n_ast_errors", "z_ast_levels"]
KINDS = ["classic", "HC0", "HC1", "HC2", "HC3", "CR0", "CR1", "CR2", "CR3"]
ADJUSTMENTS = ["holm", "bonferroni", "benjamini_hochberg", "benjamini_yekutieli"]
ESTIMANDS = ["ate", "att", "atc", "ato"]

# table3.json's word for what the outputs call otherwise.
WORDS = {
    "pearson": "correlations",
    "kendall_tau_b": "kendall",  # the output of a coefficient
    "fdr_bh": "benjamini_hochberg",
    "fdr_by": "benjamini_yekutieli",
    "ate_hajek": "ate",
    "ato_overlap": "ato",
    "ipw": "weighting",
    "count": "n",
    "25%": "q1",
    "50%": "median",
    "75%": "q3",
    "se_HC3": "standard_error",
    "slope_per_sd": "estimate",
    "p": "p_value",
    "q_bh": "q_value",
    "evalue_point": "evalue",
    "d": "standardised_effect",
    "rr": "risk_ratio",
    "rr_lo": "risk_ratio_low",
    "rr_hi": "risk_ratio_high",
    "rv_q": "robustness_value",
    "rv_q_alpha": "robustness_value_alpha",
    "mde80_paired": "minimum_detectable_effect",
    "mde80_if_unpaired": "minimum_detectable_unpaired",
    "variance_ratio_unpaired_over_paired": "variance_ratio_unpaired",
    "median_diff": "median",
    "trimmed10_mean": "trimmed_mean",
    "wilcoxon_W": "wilcoxon_w",
    "sign_test_p": "sign_p",
    "skew": "skewness",
    "log_ratio_delta_se": "log_ratio_se",
    "n_pos_neg_zero/0": "positive",
    "n_pos_neg_zero/1": "negative",
    "n_pos_neg_zero/2": "zero",
}


def sd_of_pairs(row: dict) -> float:
    return float(row["standard_error"]) * math.sqrt(float(row["n_pairs"]))


def logit(row: dict) -> float:
    return math.log(float(row["median"]) / (1 - float(row["median"])))


def of(estimator: str) -> dict:
    return {"contrast": "{contrast}", "estimator": estimator}


def sensitivity(analysis: str) -> dict:
    return {"contrast": "{contrast}", "analysis": analysis, "measure": "{measure}"}


CONTRAST = {"contrast": "{contrast}"}
COVARIATE = {"contrast": "{contrast}", "covariate": "{covariate}"}
SLOPE = {"contrast": "{contrast}", "modifier": "{modifier}", "bin": "0"}
GROUP = {"contrast": "{contrast}", "modifier": "{modifier}", "bin": "{bin}"}
EFFECT = "ate_on_y_levenshtein/{contrast}/"
PAIRED = EFFECT + "paired_PRIMARY/"
MEANS = EFFECT + "naive_difference_in_means/"
OLS, LIN = EFFECT + "ols_4confounders/", EFFECT + "lin2013_interacted_8/"
WEIGHTS, STRATA = EFFECT + "ref_ipw/", EFFECT + "ref_stratify/"
CATE = EFFECT + "cate/{modifier}/"

# Block, path in table3.json, output, the row (column -> value), what of it, allowed difference.
# `{name}` stands for a part of a path, `{name=a|b}` for one of these texts; both are used in what
# follows, translated by WORDS. `contrast` gives two columns. A path may have several rules.
MAPPED = [
    ("arms", "arms/{arm}/{statistic}", "arms", {"t_treatment": "{arm}"}, "{statistic}", CLOSED),
    (
        "correlations",
        "correlations_with_y_levenshtein/{covariate}|{arm}/{m=pearson|spearman|kendall_tau_b}",
        "{m}",
        {"variable": "{covariate}", "t_treatment": "{arm}"},
        "coefficient",
        CLOSED,
    ),
    (
        "printed",
        "correlations_with_y_levenshtein/{covariate}|{arm}/paper",
        "table_correlations",
        {"variable": "{covariate}", "treatment": "{arm}"},
        "printed",
        0,
    ),
    (
        "printed",
        "paper_table3/{estimator}/{arm}",
        "table_effects",
        {"estimator": "{estimator}", "treatment": "{arm}"},
        "printed",
        0,
    ),
    ("paired", PAIRED + "n_pairs", "estimates", of("paired"), "n_pairs", 0),
    ("paired", PAIRED + "mean_diff", "estimates", of("paired"), "estimate", CLOSED),
    ("paired", PAIRED + "sd_diff", "estimates", of("paired"), sd_of_pairs, CLOSED),
    ("paired", PAIRED + "se", "estimates", of("paired"), "standard_error", CLOSED),
    ("paired", PAIRED + "t", "estimates", of("paired"), "statistic", CLOSED),
    ("paired", PAIRED + "df", "estimates", of("paired"), "df", 0),
    ("paired", PAIRED + "p", "estimates", of("paired"), "p_value", CLOSED),
    ("paired", PAIRED + "ci/0", "estimates", of("paired"), "ci_low", CLOSED),
    ("paired", PAIRED + "ci/1", "estimates", of("paired"), "ci_high", CLOSED),
    ("paired", PAIRED + "corr_arms", "arms_{contrast}", {}, "coefficient", CLOSED),
    (
        "adjusted p",
        "multiplicity_3_contrasts/holm/{contrast}",
        "estimates",
        of("paired"),
        "p_adjusted",
        CLOSED,
    ),
    (
        "adjusted p",
        "multiplicity_3_contrasts/{method}/{contrast}",
        "adjust_{method}",
        of("paired"),
        "p_adjusted",
        CLOSED,
    ),
    (
        "omnibus",
        "omnibus/{=friedman_chi2}",
        "sensitivity",
        {"analysis": "omnibus", "measure": "friedman_chi2"},
        "value",
        CLOSED,
    ),
    (
        "omnibus",
        "omnibus/{=p}",
        "sensitivity",
        {"analysis": "omnibus", "measure": "friedman_p"},
        "value",
        CLOSED,
    ),
    ("means", MEANS + "ate", "estimates", of("difference"), "estimate", CLOSED),
    ("means", MEANS + "ate", "unpaired", of("difference"), "estimate", CLOSED),
    (
        "means",
        MEANS + "se_welch_WRONG_ignores_pairing",
        "estimates",
        of("difference"),
        "standard_error",
        CLOSED,
    ),
    ("means", MEANS + "welch_df", "estimates", of("difference"), "df", CLOSED),
    ("means", MEANS + "welch_p", "estimates", of("difference"), "p_value", CLOSED),
    ("means", MEANS + "welch_ci/0", "estimates", of("difference"), "ci_low", CLOSED),
    ("means", MEANS + "welch_ci/1", "estimates", of("difference"), "ci_high", CLOSED),
    ("ols", OLS + "ate", "estimates", of("ols"), "estimate", CLOSED),
    (
        "ols",
        OLS + "se_{=CR2}",
        "estimates",
        {**of("ols"), "se_kind": "CR2"},
        "standard_error",
        CLOSED,
    ),
    ("ols", OLS + "se_{kind}", "ols_{kind}", of("ols"), "standard_error", CLOSED),
    ("lin", LIN + "ate", "lin_CR2", of("lin"), "estimate", CLOSED),
    ("lin", LIN + "se_{kind}", "lin_{kind}", of("lin"), "standard_error", CLOSED),
    (
        "weights",
        WEIGHTS + "{estimand=ate_hajek|att|atc|ato_overlap}",
        "estimand_{estimand}",
        {**of("weighting"), "estimand": "{estimand}"},
        "estimate",
        ITERATED,
    ),
    ("weights", WEIGHTS + "ess_ate_t1_t0/0", "overlap", CONTRAST, "effective_treatment", ITERATED),
    ("weights", WEIGHTS + "ess_ate_t1_t0/1", "overlap", CONTRAST, "effective_control", ITERATED),
    (
        "weights",
        EFFECT + "matching_explained/logit_intercept",
        "overlap",
        CONTRAST,
        logit,
        ITERATED,
    ),
    (
        "strata",
        STRATA + "{estimand=ate|att|atc}",
        "estimand_{estimand}",
        {**of("stratification"), "estimand": "{estimand}"},
        "estimate",
        ITERATED,
    ),
    ("strata", STRATA + "rows_kept", "estimates", of("stratification"), "n", 0),
    ("aipw", EFFECT + "aipw_armwise/ate", "estimates", of("aipw"), "estimate", ITERATED),
    (
        "aipw",
        EFFECT + "aipw_armwise/se_if_cluster",
        "estimates",
        of("aipw"),
        "standard_error",
        ITERATED,
    ),
    ("aipw", EFFECT + "aipw_armwise/se_if", "unpaired", of("aipw"), "standard_error", ITERATED),
    ("modifiers", CATE + "{what=slope_per_sd|se_HC3|p|q_bh}", "modifiers", SLOPE, "{what}", CLOSED),
    ("modifiers", CATE + "quintile_cate/{bin}/{what}", "modifiers", GROUP, "{what}", CLOSED),
    ("balance", EFFECT + "balance/{covariate}/{what}", "balance", COVARIATE, "{what}", CLOSED),
    # All weights are equal.
    (
        "balance",
        EFFECT + "balance/{covariate}/{what}",
        "balance",
        COVARIATE,
        "{what}_weighted",
        ITERATED,
    ),
    (
        "locations",
        EFFECT + "robust_location/{measure*}",
        "sensitivity",
        sensitivity("location"),
        "value",
        CLOSED,
    ),
    (
        "E-values",
        EFFECT + "evalue_paired_se/{measure}",
        "sensitivity",
        sensitivity("evalue"),
        "value",
        CLOSED,
    ),
    (
        "robustness",
        EFFECT + "sensemakr_ols_4confounders/{measure}",
        "sensitivity",
        sensitivity("robustness"),
        "value",
        CLOSED,
    ),
    (
        "Rosenbaum",
        EFFECT + "rosenbaum/gamma_star_p05_one_sided",
        "sensitivity",
        {**sensitivity("rosenbaum"), "measure": "gamma_star"},
        "value",
        ITERATED,
    ),
    (
        "Rosenbaum",
        EFFECT + "rosenbaum/p_upper/{gamma}",
        "sensitivity",
        {**sensitivity("rosenbaum"), "measure": "p_upper_{gamma}"},
        "value",
        CLOSED,
    ),
    ("power", EFFECT + "power/{measure}", "sensitivity", sensitivity("power"), "value", CLOSED),
]

# Path in table3.json -> why no output has it.
MATCHING = "of a matching that the program refuses"
UNMAPPED = {
    "source": "a text",
    STRATA + "num_strata_param": "the program reports no strata",
    STRATA + "strata_kept": "the program reports no strata",
    WEIGHTS + "atm_matching_weights": "weights that the program does not offer",
    WEIGHTS + "ate_horvitz_thompson": "weights that the program does not offer",
    EFFECT + "aipw_additive_dowhy/{what}": "one regression for both arms, not offered",
    EFFECT + "tie_averaged_matching/{what}": MATCHING,
    EFFECT + "matching_explained/logit_coef/{at}": "coefficients of the propensity; "
    "that all scores are 0.5 is checked",
    EFFECT + "matching_explained/lbfgs_iterations": "of another optimiser",
    EFFECT + "matching_explained/{=distinct_rows_matched|row_matched_to_everyone|"
    "y_control_of_that_row|y_treated_of_that_row|att|atc|"
    "ate_half_naive_plus_pairdiff_of_row|sd_over_tie_winner}": MATCHING,
    EFFECT + "matching_explained/range_if_another_row_were_the_tie_winner/{end}": MATCHING,
}
