#!/usr/bin/env python3
"""How often the intervals of `regress` and `describe` cover the truth, through the program.

What it shows: data sets with a known effect are drawn, all of a case are analysed in one run
(`by: [set]`), and the share of 95 % intervals that contain the truth is counted over the data sets
with an estimate. It must be 93 to 97 %, or the estimator refuses (nearly) all of them. Matching and
stratification take the estimated score as known, and intervals of rates are discrete: these may
cover more.

- overlap: arms whose propensity scores are outside of 0.05 to 0.95 in 0, 10 and 19 % of the rows,
  as they are, trimmed (`overlap: trim`) and by overlap weights (`estimand: ato`); the outcome is
  linear in the confounder, or curved for the estimators that need no model of it
- rates: `describe` of 20 answers that pass with probability 0.5 to 0.99, by Wilson's and by the
  exact interval
- pass@k: `describe` of the estimates of 20 or 164 problems, of 20 answers each, whose probabilities
  are drawn from a beta distribution; and of answers in repositories, by cluster. Where nearly all
  problems are solved only the exact interval has limits
- losses: non-inferiority of an outcome of which less is better; the share of data sets that are
  called noninferior or superior where the truth lies at the margin (5 %), far beyond it (none) and
  where there is no effect
- ties: Wilcoxon's tests of outcomes with many ties (the probability of superiority) and with none

How to run it: `python3 benches/effects_coverage.py [--sets 2000] [--only TEXT] [--galeras PATH]`.
Random numbers are seeded by the case. 2,000 data sets have a standard error of 0.5 %.

What it prints: a line per case and estimator. Exit code 1 if a share is outside of its limits.
"""

import csv
import math
import random
import sys
from itertools import product
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import Verdict, arguments, run, table, work_folder  # noqa: E402

LIMITS, WIDE = (93, 97), (93, 100)
EFFECT = 0.5
# p-values are adjusted within a data set.
TWO = (
    "treatment: arm, control: c, outcomes: [y], by: [set], adjust_over: [outcomes], refuters: [], "
    "seed: 1"
)
WORKFLOW = """
galeras: 1
name: coverage
steps:
  data:
    op: read
    with: {{ path: data.csv, key: [id] }}
{steps}outputs:
{outputs}"""


def confounded(slope, curved):
    """Rows of a set whose arm depends on `x`."""

    def rows(rng):
        for _ in range(400):
            x = rng.gauss(0, 1)
            treated = rng.random() < 1 / (1 + math.exp(-slope * x))
            bend = 0.5 * abs(x) ** 1.5 * (1 if x > 0 else -1) if curved else 0
            y = EFFECT * treated + x + bend + rng.gauss(0, 1)
            yield ["t" if treated else "c", f"{y:.6f}", f"{x:.6f}"]

    return rows


def randomised(control, treated, rows_of_an_arm):
    """Rows of a set under a coin: draws of two functions of a generator."""

    def rows(rng):
        for _ in range(rows_of_an_arm):
            yield ["c", control(rng)]
            yield ["t", treated(rng)]

    return rows


def pairs(control, treated, units):
    def rows(rng):
        for unit in range(units):
            yield ["c", control(rng), unit]
            yield ["t", treated(rng), unit]

    return rows


def levels(weights):
    """A draw of one of the levels 0, 1, … with these weights."""
    return lambda rng: rng.choices(range(len(weights)), weights)[0]


def superiority(control, treated):
    """The probability that a draw of `treated` is larger, ties counted half."""
    chances = product(enumerate(control), enumerate(treated))
    larger = sum(p * q * ((j > i) + (j == i) / 2) for (i, p), (j, q) in chances)
    return larger / sum(control) / sum(treated)


def normal(mean):
    return lambda rng: f"{rng.gauss(mean, 1):.6f}"


def rate(p):
    def rows(rng):
        for _ in range(20):
            yield [int(rng.random() < p)]

    return rows


def passes(problems, a, b, k):
    """The estimate of pass@k of each problem, from 20 answers."""

    def rows(rng):
        for _ in range(problems):
            p = rng.betavariate(a, b)
            wrong = sum(rng.random() >= p for _ in range(20))
            yield [f"{1 - math.comb(wrong, k) / math.comb(20, k):.17g}"]

    return rows


def answers_of(repositories, a, b):
    """Five answers in each repository, which pass with a probability of their own."""

    def rows(rng):
        for repo in range(repositories):
            p = rng.betavariate(a, b)
            for _ in range(5):
                yield [int(rng.random() < p), repo]

    return rows


def any_of(a, b, k):
    """The probability that one of k answers passes, over problems."""
    none = math.lgamma(b + k) + math.lgamma(a + b) - math.lgamma(b) - math.lgamma(a + b + k)
    return 1 - math.exp(none)


def write(path, header, case, rows, sets):
    rng, number = random.Random(case), 0
    with open(path, "w") as file:
        file.write(",".join(["id", "set", *header]) + "\n")
        for at in range(sets):
            for row in rows(rng):
                file.write(",".join(map(str, [number, at, *row])) + "\n")
                number += 1


def analysed(args, work, case, header, rows, steps):
    """The rows of each step's table: `steps` has operator, arguments and port by name."""
    folder = work / case.replace(" ", "_").replace(",", "").replace("%", "")
    folder.mkdir()
    write(folder / "data.csv", header, case, rows, args.sets)
    text = "".join(
        f"  {name}:\n    op: {op}\n    from: data\n    with: {{ {given} }}\n"
        for name, (op, given, _) in steps.items()
    )
    outputs = "".join(
        f"  {name}: {{ from: {name}{port}, path: {name}.csv }}\n"
        for name, (_, _, port) in steps.items()
    )
    workflow = folder / "coverage.yaml"
    workflow.write_text(WORKFLOW.format(steps=text, outputs=outputs))
    run(args.galeras, workflow, folder / "cache")
    (folder / "data.csv").unlink()
    for name in steps:
        with open(folder / "cache-out" / f"{name}.csv", newline="") as file:
            yield name, list(csv.DictReader(file))


class Report:
    def __init__(self):
        self.lines, self.verdict = [], Verdict()

    def covered(self, case, rows, truth, limits, bounds=None):
        """Counts the intervals of rows that contain the truth."""
        given = [row for row in rows if row.get("status", "ok") == "ok" and row["ci_low"]]
        ends = [(float(row["ci_low"]), float(row["ci_high"])) for row in given]
        refused = 100 * (1 - len(given) / len(rows))
        share = 100 * sum(low <= truth <= high for low, high in ends) / max(len(ends), 1)
        holds = refused > 95 or limits[0] <= share <= limits[1]
        if bounds:
            holds = holds and all(bounds[0] <= low <= high <= bounds[1] for low, high in ends)
        self.add(case, share if refused <= 95 else None, refused, limits, holds)

    def add(self, case, share, refused, limits, holds):
        shown = "refused" if share is None else f"{share:.1f}"
        self.lines.append([case, shown, f"{refused:.0f}", f"{limits[0]} to {limits[1]}"])
        self.verdict.check(holds, f"{case}: {shown} % ({refused:.0f} % refused)")


def overlap(args, work, report):
    for (slope, clipped), curved in product([(0.8, 0), (1.79, 10), (2.25, 19)], [False, True]):
        shape = "curved" if curved else "linear"
        case = f"{clipped} % outside, {shape}"
        if args.only not in f"overlap {case}":
            continue
        with_x = f"{TWO}, confounders: [x]"
        free = "aipw, weighting, matching, stratification"
        estimators = free if curved else f"ols, lin, {free}"
        steps = {
            "all": ("regress", f"{with_x}, estimators: [{estimators}]", ""),
            "trim": ("regress", f"{with_x}, overlap: trim, estimators: [weighting, aipw]", ""),
            "ato": ("regress", f"{with_x}, estimand: ato", ""),
        }
        rows = confounded(slope, curved)
        for step, found in analysed(args, work, case, ["arm", "y", "x"], rows, steps):
            for estimator in sorted({row["estimator"] for row in found}):
                wide = estimator in ("matching", "stratification")
                own = [row for row in found if row["estimator"] == estimator]
                name = f"overlap, {case}, {step}: {estimator}"
                report.covered(name, own, EFFECT, WIDE if wide else LIMITS)


def rates(args, work, report):
    for p in (0.5, 0.8, 0.9, 0.95, 0.99):
        case = f"rates {p}"
        if args.only not in case:
            continue
        given = "columns: [passed], by: [set]"
        steps = {
            "rate": ("describe", given, ""),
            "exact": ("describe", f"{given}, interval: exact", ""),
        }
        for step, found in analysed(args, work, case, ["passed"], rate(p), steps):
            name = case if step == "rate" else f"{case}, exact"
            report.covered(name, found, p, WIDE, bounds=(0, 1))


def pass_at_k(args, work, report):
    for problems, a, b, k in [
        (20, 0.5, 0.5, 1),
        (20, 2, 0.3, 5),
        (164, 0.5, 0.5, 1),
        (164, 0.5, 0.5, 5),
        (164, 2, 0.3, 5),
    ]:
        truth = any_of(a, b, k)
        case = f"pass@{k} of {problems} problems, {truth:.2f}"
        if args.only not in case:
            continue
        given = "columns: [solved], by: [set]"
        steps = {
            "mean": ("describe", given, ""),
            "exact": ("describe", f"{given}, interval: exact", ""),
        }
        rows = passes(problems, a, b, k)
        for step, found in analysed(args, work, case, ["solved"], rows, steps):
            # Student's interval of a mean of 0.99 is too short in both.
            limits = WIDE if step == "exact" else LIMITS if truth < 0.9 else (0, 100)
            report.covered(f"{case}, {step}", found, truth, limits)
    for repositories, a, b in [(20, 2, 0.3), (50, 0.5, 0.5)]:
        truth = a / (a + b)
        case = f"pass@1 in {repositories} repositories, {truth:.2f}"
        if args.only not in case:
            continue
        given = "columns: [passed], by: [set], cluster: repo, interval: exact"
        rows, steps = answers_of(repositories, a, b), {"exact": ("describe", given, "")}
        for _, found in analysed(args, work, case, ["passed", "repo"], rows, steps):
            report.covered(case, found, truth, WIDE, bounds=(0, 1))


def losses(args, work, report):
    margin = 0.3
    given = f"margin: {margin}, test: noninferiority, lower_is_better: [n_errors]"
    given = f"{TWO.replace('[y]', '[n_errors]')}, equivalence: {{ {given} }}"
    for worse, limits in ((margin, (3, 7)), (0.8, (0, 0.5)), (0.0, (50, 100))):
        case = f"losses, {worse} more errors"
        if args.only not in case:
            continue
        steps = {"margin": ("regress", given, ".findings")}
        rows = randomised(normal(2), normal(2 + worse), 100)
        for _, found in analysed(args, work, case, ["arm", "n_errors"], rows, steps):
            passed = sum(row["verdict"] in ("noninferior", "superior") for row in found)
            share = 100 * passed / len(found)
            holds = limits[0] <= share <= limits[1]
            report.add(f"{case}: noninferior or superior", share, 0, limits, holds)


def ties(args, work, report):
    few, more = [15, 4, 1], [18, 1.5, 0.5]
    likert, better = [1, 2, 4, 2, 1], [1, 1, 3, 3, 2]
    for name, control, treated in (("zeros", few, more), ("five levels", likert, better)):
        truth = superiority(control, treated)
        for units in (False, True):
            case = f"ties {name}{' in pairs' if units else ''}"
            if args.only not in case:
                continue
            draws = (levels(control), levels(treated))
            rows = pairs(*draws, 100) if units else randomised(*draws, 100)
            header = ["arm", "y", "unit"] if units else ["arm", "y"]
            given = f"{TWO}, estimators: [wilcoxon]{', unit: unit' if units else ''}"
            steps = {"wilcoxon": ("regress", given, "")}
            for _, found in analysed(args, work, case, header, rows, steps):
                own = [row for row in found if row["estimator"] == "wilcoxon"]
                measures = {row["measure"] for row in own if row["status"] == "ok"}
                holds = measures == {"probability_of_superiority"}
                report.verdict.check(holds, f"{case}: {measures}")
                report.covered(case, own, truth, LIMITS)
    case = "ties none"
    if args.only in case:
        steps = {"wilcoxon": ("regress", f"{TWO}, estimators: [wilcoxon]", "")}
        rows = randomised(normal(0), normal(EFFECT), 60)
        for _, found in analysed(args, work, case, ["arm", "y"], rows, steps):
            report.covered(case, found, EFFECT, LIMITS)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--sets", type=int, default=2_000, help="data sets of each case")
    parser.add_argument("--only", default="", help="only cases whose name has this text")
    args = parser.parse_args()
    work, report = work_folder(args), Report()
    for part in (overlap, rates, pass_at_k, losses, ties):
        part(args, work, report)
    table(["case", "covered, %", "refused, %", "limits"], report.lines)
    return report.verdict.end()


if __name__ == "__main__":
    sys.exit(main())
