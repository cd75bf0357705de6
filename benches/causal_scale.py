#!/usr/bin/env python3
"""A million units: how long `regress` takes, and how much memory.

What it shows: a CSV of units with ten confounders, an instrument, a treatment that depends on
them and an outcome with an effect of 2 is read, and the effect is estimated by every estimator
without refuters: first unpaired, then with every unit answered under both arms (twice the rows).
The steps must take less than 60 s together, and the process 4 GiB.

How to run it: `python3 benches/causal_scale.py [--rows 1000000] [--galeras PATH]`.

What it prints: the seconds of each step, the largest memory of the process, and the estimates.
Exit code 1 if a limit is passed or an estimate is further than 5 standard errors from the truth.
"""

import json
import math
import random
import resource
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import Verdict, arguments, run, table, work_folder  # noqa: E402

SECONDS, GIB, EFFECT = 60, 4, 2
CONFOUNDERS = [f"x{i}" for i in range(10)]
WORKFLOW = """
galeras: 1
name: scale
steps:
  data:
    op: read
    with: {{ path: data.csv, key: [n] }}
  unpaired:
    op: regress
    from: data
    with:
      treatment: arm
      control: c
      outcomes: [y]
      confounders: [{confounders}]
      instruments: [z]
      estimators: [difference, ols, lin, matching, stratification, weighting, aipw, iv]
      refuters: []
      seed: 1
  both:
    op: sql
    from: data
    with:
      query: >
        SELECT id || '/c' AS id, id AS unit, 'c' AS answered, y - 2 * (arm = 't')::int AS score,
               {confounders} FROM input
        UNION ALL
        SELECT id || '/t' AS id, id AS unit, 't' AS answered, y + 2 * (arm = 'c')::int + noise,
               {confounders} FROM input
      key: [id]
  paired:
    op: regress
    from: both
    with:
      treatment: answered
      control: c
      outcomes: [score]
      unit: unit
      confounders: [{confounders}]
      modifiers: [x0]
      estimators: [paired, difference, ols, lin, weighting, aipw]
      refuters: []
      seed: 1
"""


def write(path, rows):
    rng = random.Random(1)
    with open(path, "w") as file:
        file.write(",".join(["n", "arm", "y", "z", "noise", *CONFOUNDERS]) + "\n")
        for n in range(rows):
            x = [rng.gauss(0, 1) for _ in CONFOUNDERS]
            z = rng.random() < 0.5
            logit = 0.3 * x[0] - 0.4 * x[1] + 0.2 * x[2] + (0.8 if z else -0.8)
            treated = rng.random() < 1 / (1 + math.exp(-logit))
            y = 2 * treated + sum(x) / 2 + rng.gauss(0, 1)
            values = [n, "t" if treated else "c", f"{y:.6f}", int(z), f"{rng.gauss(0, 1):.6f}"]
            file.write(",".join(map(str, values + [f"{v:.6f}" for v in x])) + "\n")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="units")
    args = parser.parse_args()
    work, verdict = work_folder(args), Verdict()
    write(work / "data.csv", args.rows)
    workflow, cache = work / "scale.yaml", work / "cache"
    workflow.write_text(WORKFLOW.format(confounders=", ".join(CONFOUNDERS)))
    done = run(args.galeras, workflow, cache)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024**2
    steps = [
        (name, f"{step['rows']:,}", f"{step['seconds']:.2f}") for name, step in done.steps.items()
    ]
    table(["step", "rows of the result", "seconds"], steps)
    seconds = sum(done.steps[name]["seconds"] for name in ("unpaired", "paired"))
    print(f"both analyses: {seconds:.1f} s; largest memory of the process: {peak:.2f} GiB")
    verdict.check(seconds < SECONDS, f"{seconds:.1f} s, limit {SECONDS}")
    verdict.check(peak < GIB, f"{peak:.2f} GiB, limit {GIB}")
    rows = []
    for step in ("unpaired", "paired"):
        show = [
            args.galeras,
            "show",
            str(workflow),
            step,
            "--format",
            "json",
            "--cache",
            str(cache),
        ]
        shown = subprocess.run(show, capture_output=True, text=True, check=True).stdout
        for row in map(json.loads, shown.splitlines()):
            name, value, error = row["estimator"], row["estimate"], row["standard_error"]
            rows.append((step, name, value, error, row["reason"] or ""))
            # The plain difference of unpaired arms is confounded, as it should be.
            biased = step == "unpaired" and name == "difference"
            right = value is not None and (biased or abs(value - EFFECT) < 5 * error)
            verdict.check(right, f"{step} {name}: {value} ({row['reason']})")
    table(["step", "estimator", "estimate", "standard error", "reason"], rows)
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
