"""The analysis that both engines make: its columns, estimators, refuters and settings."""

import resource

PINS = {
    "dowhy": "0.14",
    "numpy": "2.4.6",
    "pandas": "3.1.1",
    "scipy": "1.15.3",
    "scikit-learn": "1.9.1",
    "statsmodels": "0.15.0",
    "networkx": "3.6.1",
    "joblib": "1.6.0",
    "pyarrow": "26.0.1",
}
PINS_ANTECEDENT = {
    "antecedent": "2.4.1",
    "numpy": "2.4.6",
    "pydantic": "2.14.3",
    "pyarrow": "26.0.1",
}
OUTCOME, CONTROL, ARMS = "y_levenshtein", "control", ["T1", "T2"]
CONFOUNDERS = ["z_prompt_size", "z_n_whitespaces", "z_token_counts", "z_nloc"]
ESTIMATORS = ["matching", "stratification", "weighting"]
FRACTION, SEED, PARITY = 0.9, 42, 1e-6

# Refuter of `regress` -> DoWhy's and its arguments.
REFUTERS = {
    "placebo": ("placebo_treatment_refuter", {"placebo_type": "permute"}),
    "random_common_cause": ("random_common_cause", {}),
    "subset": ("data_subset_refuter", {"subset_fraction": FRACTION}),
}

# Race -> which rows take part, and what more `regress` is told.
WHERE = {"fair": "(snippet % 2 = 0) = (t_treatment = 'control')", "degenerate": "true"}
MORE = {"fair": "", "degenerate": "\n      unit: snippet"}

# Race -> DoWhy's ways: name, n_jobs, whether with one thread, whether refitted.
WAYS = {
    "fair": [
        ("default", 1, False, False),
        ("one thread", 1, True, False),
        ("two processes", 2, False, False),
        ("refitted", 1, True, True),
    ],
    "degenerate": [("default", 1, False, False), ("two processes", 2, False, False)],
}
THREADS = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]


def processor_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime
