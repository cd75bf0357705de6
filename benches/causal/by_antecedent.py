"""The race with the Python package `antecedent` (MIT or Apache-2.0; a Rust core): identification
by a graph, estimates and refuters, in a process of its own."""

import csv
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from causal.race import ARMS, CONFOUNDERS, CONTROL, OUTCOME, PARITY, SEED, processor_seconds
from harness import Verdict, run, table

# Started anew as the process that is measured.
SCRIPT = Path(__file__).resolve().parents[1] / "causal_vs_dowhy.py"
CARD = ["exper", "black", "south", "married", "smsa"]
# Its refuters that change the data repeat 20 times, and are for its linear estimator only.
SIMULATIONS, CLIP = 20, 0.01
RIVALS = {
    "ols": "linear.adjustment.ate",
    "weighting": "propensity.weighting",
    "matching": "propensity.matching",
    "stratification": "propensity.stratification",
    "aipw": "aipw",
    "iv": "iv.2sls",
}

# `clip` and classic errors are its defaults; so are five folds. Only the linear estimator is
# refuted, as in antecedent; `--refute-all` refutes the others too.
WORKFLOW = """\
galeras: 1
name: antecedent-bench
steps:
  rows:
    op: read
    with: {{ path: {data}, key: [id] }}
  linear:
    op: regress
    from: rows
    with:
      treatment: treatment
      control: control
      outcomes: [outcome]
      graph: {graph}
      estimators: [ols]
      standard_errors: classic
      simulations: {simulations}
      seed: {seed}
  others:
    op: regress
    from: rows
    with:
      treatment: treatment
      control: control
      outcomes: [outcome]
      graph: {graph}
      estimators: [{estimators}]{more}
      clip: [{clip}, {rest}]
      max_clipped: 1
      folds: 5
      standard_errors: classic
      simulations: {simulations}
      seed: {seed}
outputs:
  linear: {{ from: linear, path: linear.csv }}
  others: {{ from: others, path: others.csv }}
"""


def published(data: Path) -> dict:
    """The published experiment: even snippets give control, odd ones the arm."""
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(data).to_pylist()
    sets = {}
    for arm in ARMS:
        kept = [
            row
            for row in rows
            if row["t_treatment"] in (CONTROL, arm)
            and (row["snippet"] % 2 == 0) == (row["t_treatment"] == CONTROL)
        ]
        treated = [row["t_treatment"] == arm for row in kept]
        sets[f"published {arm}"] = (treated, OUTCOME, CONFOUNDERS, None, kept)
    return sets


def reference(folder: Path, name: str) -> tuple:
    """One of the reference sets."""
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as lines:
        rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(lines)]
    if name == "card_iv":
        # Any college as the treatment, which the nearness of one moves.
        return [row["educ"] > 12 for row in rows], "lwage", CARD, "nearc4", rows
    meta = json.loads((folder / f"{name}.json").read_text())["meta"]
    treated = [row[meta["treatment"]] == 1 for row in rows]
    return treated, meta["outcome"], meta["covariates"], None, rows


def prepare(args, work: Path) -> dict:
    """Writes every set as a CSV file that both engines read: name -> file, covariates,
    instrument."""
    sets = published(args.data)
    folder = args.data.parent.parent / "reference" / "causal"
    sets |= {name: reference(folder, name) for name in ("card_iv", "nhefs", "ihdp_A_seed0")}
    files = {}
    for name, (treated, outcome, covariates, instrument, rows) in sets.items():
        path = work / f"{name.replace(' ', '_')}.csv"
        columns = [*covariates, *([instrument] if instrument else [])]
        with path.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out)
            writer.writerow(["id", "treatment", "outcome", *columns])
            for at, (row, arm) in enumerate(zip(rows, treated, strict=True)):
                cells = [repr(float(row[column])) for column in columns]
                arm = "treated" if arm else "control"
                writer.writerow([f"r{at:06}", arm, repr(float(row[outcome])), *cells])
        files[name] = (path, covariates, instrument)
    return files


def read_columns(path: Path) -> dict:
    """The columns of such a file as arrays."""
    import numpy

    with path.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    names = [name for name in rows[0] if name not in ("id", "treatment")]
    columns = {name: numpy.array([float(row[name]) for row in rows]) for name in names}
    columns["treatment"] = numpy.array([float(row["treatment"] == "treated") for row in rows])
    return columns


def edges(covariates: list, instrument: str | None) -> list:
    """The graph in which the covariates are all that is to be adjusted for."""
    arrows = [(name, to) for name in covariates for to in ("treatment", "outcome")]
    return [*arrows, ("treatment", "outcome"), *([(instrument, "treatment")] if instrument else [])]


def antecedent_worker(task: dict) -> dict:
    """What a user of antecedent would write, and no more. Runs in a process of its own."""
    import antecedent

    columns = read_columns(Path(task["data"]))
    query = antecedent.AverageEffect("treatment", "outcome")
    made = {"estimates": {}, "errors": {}, "refused": {}, "refuters": {}}
    for name in task["estimators"]:
        with_instrument = name == "iv"
        instrument = task["instrument"] if with_instrument else None
        known = ["treatment", "outcome", *task["covariates"], *([instrument] if instrument else [])]
        try:
            result = antecedent.analyze(
                {column: columns[column] for column in known},
                graph=edges(task["covariates"], instrument),
                query=query,
                identifier="iv" if with_instrument else "backdoor.adjustment",
                estimator=RIVALS[name],
                refute="none" if with_instrument else "full",
                bootstrap=0,
                seed=SEED,
            )
        except Exception as refusal:
            made["refused"][name] = str(refusal).split("\n")[0]
            continue
        made["estimates"][name] = float(result.estimate.ate)
        made["errors"][name] = float(result.estimate.se_analytic)
        reports = result.validation.reports if result.validation else ()
        made["refuters"][name] = {one.refuter: one.replicates for one in reports}
    return made


def by_antecedent(path: Path, covariates: list, instrument: str | None, work: Path) -> tuple:
    """A run of antecedent: wall and processor seconds, its numbers."""
    out = work / "antecedent.json"
    task = {
        "data": str(path),
        "covariates": covariates,
        "instrument": instrument,
        "estimators": [name for name in RIVALS if instrument or name != "iv"],
        "out": str(out),
    }
    used, started = processor_seconds(), time.perf_counter()
    subprocess.run(
        [sys.executable, str(SCRIPT), "--antecedent-worker", json.dumps(task)],
        env={**os.environ, "GALERAS_IN_VENV": "1"},
        check=True,
    )
    wall, used = time.perf_counter() - started, processor_seconds() - used
    return wall, used, json.loads(out.read_text())


def by_galeras(args, path: Path, covariates: list, instrument: str | None, work: Path) -> tuple:
    """A run of ours on an empty store: wall and processor seconds, its numbers."""
    import shutil

    cache, out = work / "cache", work / "cache-out"
    for folder in (cache, out):
        shutil.rmtree(folder, ignore_errors=True)
    arrows = " ; ".join(f"{a} -> {b}" for a, b in edges(covariates, instrument))
    others = [name for name in RIVALS if name != "ols"]
    more = "" if args.refute_all else "\n      refuters: []"
    more += f"\n      instruments: [{instrument}]" if instrument else ""
    flow = work / "antecedent.yaml"
    flow.write_text(
        WORKFLOW.format(
            data=json.dumps(str(path)),
            graph=json.dumps(f"dag {{ {arrows} }}"),
            estimators=", ".join(name for name in others if instrument or name != "iv"),
            more=more,
            clip=CLIP,
            rest=1 - CLIP,
            simulations=SIMULATIONS,
            seed=SEED,
        )
    )
    used = processor_seconds()
    done = run(args.galeras, flow, cache, "--jobs", str(args.jobs))
    used = processor_seconds() - used
    made = {"estimates": {}, "errors": {}, "refused": {}}
    for name in ("linear.csv", "others.csv"):
        with next(out.rglob(name)).open(newline="", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                if row["status"] == "ok":
                    made["estimates"][row["estimator"]] = float(row["estimate"])
                    made["errors"][row["estimator"]] = float(row["standard_error"])
                else:
                    made["refused"][row["estimator"]] = row["reason"]
    return done.wall, used, made


def scores(columns: dict, covariates: list):
    """Propensities by maximum likelihood, a third time and by other means than both engines."""
    import numpy

    design = numpy.column_stack([numpy.ones_like(columns["treatment"])])
    for name in covariates:
        column = columns[name]
        design = numpy.column_stack([design, (column - column.mean()) / column.std()])
    beta = numpy.zeros(design.shape[1])
    for _ in range(50):
        e = 1 / (1 + numpy.exp(-design @ beta))
        hessian = (design * (e * (1 - e))[:, None]).T @ design
        beta = beta + numpy.linalg.solve(hessian, design.T @ (columns["treatment"] - e))
    return 1 / (1 + numpy.exp(-design @ beta))


def by_their_rule(name: str, columns: dict, e) -> float | None:
    """An estimate by the rule that antecedent documents, written anew."""
    import numpy

    treated, outcome = columns["treatment"] == 1, columns["outcome"]
    if name == "stratification":
        # Five strata of equal size by rank.
        rank = numpy.empty(len(e), int)
        rank[numpy.argsort(e, kind="stable")] = numpy.arange(len(e))
        total = 0.0
        for stratum in range(5):
            inside = rank * 5 // len(e) == stratum
            one, other = outcome[inside & treated], outcome[inside & ~treated]
            total += inside.sum() * (one.mean() - other.mean())
        return float(total / len(e))
    if name == "matching":
        # The nearest by the logit, one to one and with replacement.
        logit = numpy.log(e / (1 - e))

        def matched(of, among):
            near = [int(numpy.argmin(numpy.abs(logit[among] - value))) for value in logit[of]]
            return outcome[among][near]

        on_treated = outcome[treated] - matched(treated, ~treated)
        on_control = matched(~treated, treated) - outcome[~treated]
        return float(numpy.concatenate([on_treated, on_control]).mean())
    return None


def wald(columns: dict, instrument: str) -> float:
    """The effect of the treatment that an instrument moves, adjusted for nothing."""
    import numpy

    moved = columns[instrument] - columns[instrument].mean()
    return float(numpy.dot(moved, columns["outcome"]) / numpy.dot(moved, columns["treatment"]))


def differences(
    name: str, path: Path, covariates: list, instrument: str | None, ours: dict, theirs: dict
) -> list:
    """A line for each estimator: both estimates, and why they differ. The last cell says whether
    they must be equal and are not."""
    columns = read_columns(path)
    e = scores(columns, covariates)
    ties = len(e) - len(set(e.round(12).tolist()))
    lines = []
    for estimator in RIVALS:
        if estimator not in {*theirs["estimates"], *theirs["refused"]}:
            continue
        mine, peer = ours["estimates"].get(estimator), theirs["estimates"].get(estimator)
        wrong = False
        if mine is None or peer is None:
            refused = ours["refused"].get(estimator), theirs["refused"].get(estimator)
            why = "; ".join(
                f"{who}: {text}"
                for who, text in zip(("ours", "theirs"), refused, strict=True)
                if text
            )
        elif abs(mine - peer) <= PARITY * abs(peer):
            why = f"equal ({abs(mine - peer) / abs(peer):.0e})"
        elif estimator in ("ols", "weighting"):
            why, wrong = "DIFFERENT", True
        elif estimator == "iv":
            rule = wald(columns, instrument)
            why = f"theirs leaves the covariates out: Wald's ratio is {rule:.6f}"
            wrong = abs(rule - peer) > PARITY * abs(peer)
        elif estimator == "aipw":
            apart = abs(mine - peer) / theirs["errors"][estimator]
            why = f"rows fall into other folds: {apart:.2f} of its standard error apart"
            wrong = apart > 1.0
        else:
            rule = by_their_rule(estimator, columns, e)
            how = {
                "stratification": "theirs has 5 strata of equal size, ours n / 20 halved until "
                "each has 10 rows of both arms",
                "matching": "theirs takes one neighbour by the logit, ours averages all at the "
                "least distance of scores",
            }[estimator]
            why = f"{how}; their rule written anew: {rule:.6f}; {ties} tied scores"
            # Without ties the rule says it all; of matches antecedent misses some of the nearest.
            exact = estimator == "stratification" and ties == 0
            wrong = exact and abs(rule - peer) > PARITY * abs(peer)
        shown = [f"{value:.6f}" if value is not None else "refused" for value in (mine, peer)]
        lines.append([name, estimator, *shown, why, wrong])
    return lines


def race_antecedent(args, work: Path) -> Verdict:
    """All sets, in turns; prints estimates side by side and times."""
    verdict, files = Verdict(), prepare(args, work)
    times: dict = {name: {"ours": [], "theirs": []} for name in files}
    lines = []
    for at in range(args.rounds):
        for name, (path, covariates, instrument) in files.items():
            wall, used, ours = by_galeras(args, path, covariates, instrument, work)
            times[name]["ours"].append((wall, used))
            wall, used, theirs = by_antecedent(path, covariates, instrument, work)
            times[name]["theirs"].append((wall, used))
            if at == 0:
                lines += differences(name, path, covariates, instrument, ours, theirs)
        print(f"antecedent: round {at + 1} of {args.rounds}", file=sys.stderr, flush=True)
    print("\nantecedent: average treatment effects")
    table(["data", "estimate", "ours", "theirs", "why"], [line[:-1] for line in lines])
    for line in lines:
        verdict.check(not line[-1], f"{line[0]}, {line[1]}: {line[2]} and {line[3]}")
    print(
        f"\nantecedent: whole processes, {args.rounds} rounds; ours with four refuters of "
        f"{SIMULATIONS} simulations for {'every estimator' if args.refute_all else '`ols`'}, "
        f"theirs with its full suite, which repeats {SIMULATIONS} times too, for `ols` only"
    )
    rows, ratios = [], []
    for name, found in times.items():
        middle = {
            who: [statistics.median(all_) for all_ in zip(*of, strict=True)]
            for who, of in found.items()
        }
        ratio, by_processor = (middle["theirs"][at] / middle["ours"][at] for at in range(2))
        ratios.append(ratio)
        cells = [f"{value:.2f}" for who in ("ours", "theirs") for value in middle[who]]
        rows.append([name, *cells, f"{ratio:.1f}", f"{by_processor:.1f}"])
    table(
        [
            "data",
            "ours s",
            "processor s",
            "theirs s",
            "processor s",
            "theirs / ours",
            "by processor",
        ],
        rows,
    )
    if args.faster_than_antecedent:
        verdict.check(
            min(ratios) >= args.faster_than_antecedent,
            f"at least {args.faster_than_antecedent} times antecedent's speed",
        )
    return verdict
