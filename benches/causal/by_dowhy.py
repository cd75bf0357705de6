"""The analysis by DoWhy, in a process of its own."""

import json
import logging
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

from causal.race import (
    ARMS,
    CONFOUNDERS,
    CONTROL,
    ESTIMATORS,
    OUTCOME,
    REFUTERS,
    SEED,
    THREADS,
    processor_seconds,
)

# Started anew as the process that is measured.
SCRIPT = Path(__file__).resolve().parents[1] / "causal_vs_dowhy.py"


def frame(data: Path, race: str, arm: str):
    """The rows of an arm and of control, as DoWhy takes them."""
    import pandas

    rows = pandas.read_parquet(data)
    control = rows["t_treatment"] == CONTROL
    if race == "fair":
        rows = rows[(rows["snippet"] % 2 == 0) == control]
    rows = rows[rows["t_treatment"].isin([CONTROL, arm])].reset_index(drop=True)
    rows["treated"] = rows["t_treatment"] == arm
    return rows[["treated", OUTCOME, *CONFOUNDERS]]


def tie_averaged(scores, treated, outcome) -> float:
    """The effect by matching on these scores, where all nearest neighbours count alike.

    DoWhy takes one of them, whichever its search meets first."""
    import numpy

    scores = numpy.round(scores, 12)

    def matched(asked, given, outcomes):
        levels, at = numpy.unique(given, return_inverse=True)
        count = numpy.bincount(at)
        total = numpy.bincount(at, outcomes)
        above = numpy.clip(numpy.searchsorted(levels, asked), 0, len(levels) - 1)
        below = numpy.clip(above - 1, 0, len(levels) - 1)
        up, down = numpy.abs(levels[above] - asked), numpy.abs(asked - levels[below])
        use_up, use_down = up <= down, (down <= up) & (below != above)
        weight = use_up * count[above] + use_down * count[below]
        return (use_up * total[above] + use_down * total[below]) / weight

    one, other = treated, ~treated
    on_treated = outcome[one] - matched(scores[one], scores[other], outcome[other])
    on_control = matched(scores[other], scores[one], outcome[one]) - outcome[other]
    return float(numpy.concatenate([on_treated, on_control]).mean())


def dowhy_worker(task: dict) -> dict:
    """What a user of DoWhy would write, and no more. Runs in a process of its own."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    import numpy
    from dowhy import CausalModel
    from sklearn.linear_model import LogisticRegression

    # Not by `random_state`: with a number there, DoWhy 0.14 draws one subset a hundred times,
    # and in several processes one permutation many times.
    numpy.random.seed(SEED)
    made = {"estimates": {}, "refutations": {}, "refuting": 0.0, "scores": {}}
    for arm in ARMS:
        rows = frame(Path(task["data"]), task["race"], arm)
        model = CausalModel(rows, treatment="treated", outcome=OUTCOME, common_causes=CONFOUNDERS)
        estimand = model.identify_effect(proceed_when_unidentifiable=True)
        for estimator in ESTIMATORS:
            params = None
            if task["tight"]:
                logit = LogisticRegression(
                    C=1.0, solver="newton-cholesky", tol=1e-12, max_iter=10_000
                )
                params = {"init_params": {"propensity_score_model": logit}}
            found = model.estimate_effect(
                estimand,
                method_name=f"backdoor.propensity_score_{estimator}",
                target_units="ate",
                method_params=params,
            )
            made["estimates"][f"{arm} {estimator}"] = float(found.value)
            scores = model._data["propensity_score"].to_numpy(copy=True)
            if estimator == "matching":
                made["estimates"][f"{arm} ties averaged"] = tie_averaged(
                    scores, rows["treated"].to_numpy(), rows[OUTCOME].to_numpy(float)
                )
                made["scores"][arm] = [float(min(scores)), float(max(scores)), len(set(scores))]
            if task["refit"]:
                del model._data["propensity_score"]
            for refuter, (method, more) in REFUTERS.items() if task["simulations"] else ():
                started = time.perf_counter()
                refuted = model.refute_estimate(
                    estimand,
                    found,
                    method_name=method,
                    num_simulations=task["simulations"],
                    n_jobs=task["jobs"],
                    **more,
                )
                made["refuting"] += time.perf_counter() - started
                result = refuted.refutation_result or {}
                made["refutations"][f"{arm} {estimator} {refuter}"] = [
                    float(refuted.new_effect),
                    float(result.get("p_value", "nan")),
                ]
    return made


def by_dowhy(
    args, work: Path, race: str, simulations: int, jobs=1, one=False, refit=False, tight=False
) -> tuple:
    """A run of DoWhy in a process of its own: wall and processor seconds, its numbers."""
    out = work / "dowhy.json"
    task = {
        "data": str(args.data),
        "race": race,
        "simulations": simulations,
        "jobs": jobs,
        "refit": refit,
        "tight": tight,
        "out": str(out),
    }
    used, started = processor_seconds(), time.perf_counter()
    subprocess.run(
        [sys.executable, str(SCRIPT), "--dowhy-worker", json.dumps(task)],
        env={**os.environ, "GALERAS_IN_VENV": "1", **(dict.fromkeys(THREADS, "1") if one else {})},
        check=True,
    )
    wall, used = time.perf_counter() - started, processor_seconds() - used
    return wall, used, json.loads(out.read_text())
