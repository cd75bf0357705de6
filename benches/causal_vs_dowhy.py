#!/usr/bin/env python3
"""The analysis of treatment effects by `regress` against DoWhy, in one go, and against
the Python package antecedent.

What it shows: the effects of T1 and T2 against control on the Levenshtein distance of the
published experiment, by propensity matching, stratification and weighting, each with three
refuters (placebo, random common cause, subset of 0.9) of 100 simulations; by `galeras run` of
`read -> sql -> regress` (`--jobs 2`, an empty store each time) and by DoWhy 0.14. Times are
those of whole processes, start and reading included; the two take turns; medians are compared.

There are two races:
- `fair`, the main one: even snippets give control, odd ones T1 and T2, so that propensities
  vary and every estimator has its work to do.
- `degenerate`: all rows. All covariates are equal in all arms, every propensity is 0.5:
  `regress` refuses to match and to refute by propensities there, DoWhy gives numbers.

DoWhy takes part in several ways: `default` (as it comes: n_jobs=1), `one thread` (the same, with
one thread for linear algebra: more of them slow small fits down, most of all on a busy machine),
`two processes` (n_jobs=2), and `refitted`. By default DoWhy 0.14 keeps the first fit's scores in
a column of its table and takes them again in every simulation: it refits nothing, its random
common cause changes nothing and its placebo is judged by the scores of the real treatment (known
upstream as issue 1728). `refitted` takes that column away before the refuters (with one thread),
which is what `regress` does and what the refuters are described to do. The ratio to `default` is
told first; what is demanded is judged by the fastest way.

The race with antecedent (a Rust core, MIT or Apache-2.0) has sets of its own: the `fair` one of the
published data and the three largest of `reference` beside its folder, which both engines read as
CSV files;
by linear regression, weighting, matching, stratification, cross-fitted augmented weighting and,
where there is an instrument, two-stage least squares. Estimates stand side by side with the reason
of every difference: regression and weighting must agree to 1e-6, and antecedent's
strata and matches are made anew by the rule that it documents. Both repeat their refuters 20 times
for the linear estimator, the only one that antecedent refutes so; with `--refute-all` ours does for
every estimator.

How to run it: `python3 benches/causal_vs_dowhy.py [--data FILE.parquet] [--rounds 3]
[--simulations 100] [--races fair,degenerate] [--engines dowhy,galeras,antecedent]
[--dowhy-simulations N] [--jobs 2] [--faster-than-dowhy X] [--faster-than-antecedent X]
[--refute-all] [--numbers] [--venv FOLDER] [--work FOLDER] [--galeras PATH]`.
DoWhy needs some minutes per race and round; with `--dowhy-simulations` it runs that many, its
time in the refuters is scaled up in proportion, and the output says so (few of them overstate
it, most of all with two processes, whose start is scaled as well). `--numbers` measures nothing:
it prints DoWhy's estimates beside ours, which must agree to 1e-6 with DoWhy on a logistic
regression that is fitted to its end (scikit-learn's default stops early).

What it prints: a line per race and engine with wall and processor seconds and the ratio; the
refuters' results side by side. Exit code 1 if a demanded ratio is missed, or with `--numbers` an
estimate does not agree.
"""

import csv
import json
import os
import shutil
import statistics
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from causal.by_antecedent import antecedent_worker, race_antecedent  # noqa: E402
from causal.by_dowhy import by_dowhy, dowhy_worker  # noqa: E402
from causal.race import (  # noqa: E402
    ARMS,
    CONFOUNDERS,
    ESTIMATORS,
    MORE,
    OUTCOME,
    PARITY,
    PINS,
    PINS_ANTECEDENT,
    REFUTERS,
    SEED,
    WAYS,
    WHERE,
    processor_seconds,
)
from harness import ROOT, Verdict, arguments, in_venv, pinned, run, table, work_folder  # noqa: E402

# `penalty: 1.0` is the C=1 of scikit-learn's LogisticRegression, DoWhy's model.
WORKFLOW = """\
galeras: 1
name: causal-bench
steps:
  data:
    op: read
    with: {{ path: {data} }}
  arms:
    op: sql
    from: data
    with:
      query: >
        SELECT id, CAST(snippet AS varchar) AS snippet, t_treatment AS treatment,
               {columns}
        FROM input WHERE {where}
  effects:
    op: regress
    from: arms
    with:
      treatment: treatment
      control: control
      outcomes: [{outcome}]
      confounders: [{confounders}]
      estimators: [{estimators}]
      refuters: [{refuters}]
      simulations: {simulations}
      penalty: 1.0
      max_clipped: 1
      seed: {seed}{more}
outputs:
  estimates:   {{ from: effects, path: estimates.csv }}
  refutations: {{ from: effects.refutations, path: refutations.csv }}
"""

# Where the outputs of `regress` have what is compared: the name here -> names of the column,
# the first one that is there.
ESTIMATE = {
    "arm": ["treatment", "contrast", "arm"],
    "estimator": ["estimator"],
    "estimand": ["estimand"],
    "value": ["estimate", "effect", "value"],
    "status": ["status"],
}
REFUTATION = {
    "arm": ["treatment", "contrast", "arm"],
    "estimator": ["estimator"],
    "refuter": ["refuter"],
    "value": ["new_effect", "mean", "effect", "value"],
    "p": ["p", "p_value"],
    "status": ["status"],
}


def workflow(args, work: Path, race: str, simulations: int) -> Path:
    path = work / f"{race}_{simulations}.yaml"
    path.write_text(
        WORKFLOW.format(
            data=json.dumps(str(args.data)),
            columns=", ".join([OUTCOME, *CONFOUNDERS]),
            where=WHERE[race],
            outcome=OUTCOME,
            confounders=", ".join(CONFOUNDERS),
            estimators=", ".join(ESTIMATORS),
            refuters=", ".join(REFUTERS) if simulations else "",
            simulations=simulations or 100,
            seed=SEED,
            more=MORE[race],
        )
    )
    return path


def read_output(out: Path, name: str, columns: dict) -> list:
    """The rows of an output file, by the names that this script uses."""
    file = next(iter(sorted(out.rglob(name))), None)
    if file is None:
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    header = rows[0].keys() if rows else []
    names = {ours: next((n for n in names if n in header), None) for ours, names in columns.items()}
    return [{ours: row[n] if n else "" for ours, n in names.items()} for row in rows]


def number(text: str) -> float | None:
    return float(text) if text else None


def arm_of(text: str) -> str:
    """`T1` also if the contrast is written as a pair."""
    return next((arm for arm in ARMS if text.startswith(arm)), text)


def by_galeras(args, work: Path, race: str, simulations: int) -> tuple:
    """A run on an empty store: wall and processor seconds, its numbers."""
    cache = work / "cache"
    out = work / "cache-out"
    for folder in (cache, out):
        shutil.rmtree(folder, ignore_errors=True)
    flow = workflow(args, work, race, simulations)
    used = processor_seconds()
    done = run(args.galeras, flow, cache, "--jobs", str(args.jobs))
    used = processor_seconds() - used
    made = {"estimates": {}, "refutations": {}, "status": {}}
    for row in read_output(out, "estimates.csv", ESTIMATE):
        if row["estimand"].upper() in ("", "ATE"):
            key = f"{arm_of(row['arm'])} {row['estimator']}"
            made["estimates"][key] = number(row["value"])
            made["status"][key] = row["status"]
    for row in read_output(out, "refutations.csv", REFUTATION):
        key = f"{arm_of(row['arm'])} {row['estimator']} {row['refuter']}"
        made["refutations"][key] = [number(row["value"]), number(row["p"])]
        made["status"][key] = row["status"]
    return done.wall, used, made


def shown(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def numbers(args, work: Path) -> int:
    """DoWhy's estimates beside ours."""
    verdict = Verdict()
    for race in args.races:
        ours = {"estimates": {}, "status": {}}
        default = by_dowhy(args, work, race, 0)[2]
        tight = by_dowhy(args, work, race, 0, tight=True)[2]
        if "galeras" in args.engines:
            ours = by_galeras(args, work, race, 0)[2]
        lines = []
        for key, peer in tight["estimates"].items():
            name = key.replace("ties averaged", "matching")
            mine, status = ours["estimates"].get(name), ours["status"].get(name, "")
            relative = None if mine is None else abs(mine - peer) / abs(peer)
            lines.append(
                [
                    key,
                    shown(default["estimates"][key], 9),
                    shown(peer, 9),
                    shown(mine, 9),
                    "-" if relative is None else f"{relative:.1e}",
                    status,
                ]
            )
            # Of tied neighbours DoWhy takes any; `regress` averages them.
            if race == "fair" and "galeras" in args.engines and not key.endswith(" matching"):
                verdict.check(
                    relative is not None and relative <= PARITY, f"{key}: {mine} and {peer}"
                )
        print(f"\n{race}: average treatment effects")
        table(
            ["estimate", "DoWhy", "DoWhy, fitted to the end", "ours", "relative", "status"], lines
        )
        for arm, (low, high, distinct) in tight["scores"].items():
            print(f"propensities of {arm}: {low:.4f} to {high:.4f}, {distinct} distinct")
    return verdict.end()


def refutations(race: str, results: dict) -> None:
    """The refuters' mean effects and p-values side by side."""
    engines = list(results)
    keys = list(dict.fromkeys(k for made in results.values() for k in made["refutations"]))
    lines = []
    for key in keys:
        cells = [key]
        for engine in engines:
            value, p = results[engine]["refutations"].get(key, (None, None))
            status = results[engine].get("status", {}).get(key, "")
            cells.append(
                f"{shown(value, 3)} (p {shown(p, 2)})" if value is not None else status or "-"
            )
        lines.append(cells)
    print(f"\n{race}: mean effect over the simulations, and p")
    table(["refuter", *engines], lines)


def race_once(args, work: Path, race: str, times: dict, results: dict) -> None:
    """One round of a race: ours, then every way of DoWhy."""
    if "galeras" in args.engines:
        wall, used, results["ours"] = by_galeras(args, work, race, args.simulations)
        times.setdefault("ours", []).append((wall, used))
    if "dowhy" not in args.engines:
        return
    for way, jobs, one, refit in WAYS[race]:
        simulations = args.dowhy_simulations or args.simulations
        load = os.getloadavg()[0]
        wall, used, made = by_dowhy(args, work, race, simulations, jobs, one, refit)
        if simulations != args.simulations:
            more = made["refuting"] * (args.simulations / simulations - 1)
            wall, used = wall + more, used * (wall + more) / wall
        times.setdefault(f"DoWhy, {way}", []).append((wall, used))
        results[f"DoWhy, {way}"] = made
        print(
            f"  {race}, DoWhy, {way}: {wall:.1f} s, processor {used:.1f} s, load {load:.1f} "
            f"before and {os.getloadavg()[0]:.1f} after",
            file=sys.stderr,
            flush=True,
        )


def main() -> int:
    parser = arguments(__doc__)
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data" / "galeras_treatments.parquet"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument(
        "--dowhy-simulations", type=int, help="fewer simulations of DoWhy; its time is scaled"
    )
    parser.add_argument("--races", type=lambda t: t.split(","), default=list(WHERE))
    every = ["dowhy", "galeras", "antecedent"]
    parser.add_argument("--engines", type=lambda t: t.split(","), default=every)
    parser.add_argument("--jobs", type=int, default=2, help="threads of ours")
    parser.add_argument("--faster-than-dowhy", type=float, help="the least ratio of the main race")
    parser.add_argument("--faster-than-antecedent", type=float, help="the least ratio to it")
    parser.add_argument("--refute-all", action="store_true", help="of ours against antecedent")
    parser.add_argument("--numbers", action="store_true", help="print the estimates side by side")
    parser.add_argument("--venv", type=Path)
    parser.add_argument("--dowhy-worker", help="(this script starts itself so)")
    parser.add_argument("--antecedent-worker", help="(this script starts itself so)")
    args = parser.parse_args()
    rivals = [rival for rival in ("dowhy", "antecedent") if rival in args.engines]
    of = {"dowhy": PINS, "antecedent": PINS_ANTECEDENT}
    pins = {name: version for rival in rivals for name, version in of[rival].items()}
    folder = base / "galeras-bench" / "-".join(["venv-causal", *rivals])
    in_venv(*pinned(pins), folder=args.venv or folder)
    workers = ((args.dowhy_worker, dowhy_worker), (args.antecedent_worker, antecedent_worker))
    for asked, worker in workers:
        if asked:
            task = json.loads(asked)
            Path(task["out"]).write_text(json.dumps(worker(task)))
            return 0
    if not args.data.exists():
        sys.exit(f"there is no {args.data}: give the published data with --data")
    args.data = args.data.resolve()
    work = work_folder(args)
    versions = ", ".join(f"{name} {version}" for name, version in pins.items())
    print(f"{versions}; Python {sys.version.split()[0]}; {os.cpu_count()} cores", flush=True)
    if args.numbers:
        return numbers(args, work)

    verdict = race_antecedent(args, work) if "antecedent" in args.engines else Verdict()
    if "dowhy" not in args.engines and "antecedent" in args.engines:
        return verdict.end()
    times: dict = {race: {} for race in args.races}
    results: dict = {race: {} for race in args.races}
    for at in range(args.rounds):
        for race in args.races:
            race_once(args, work, race, times[race], results[race])
        print(f"round {at + 1} of {args.rounds}", file=sys.stderr, flush=True)
    for race in args.races:
        refutations(race, results[race])

    lines, ratios = [], {}
    for race in args.races:
        middles = {
            name: [statistics.median(seconds) for seconds in zip(*found, strict=True)]
            for name, found in times[race].items()
        }
        for name, (wall, used) in middles.items():
            walls = [wall for wall, _ in times[race][name]]
            both = ["", ""]
            if "ours" in middles and name != "ours":
                ratio, by_processor = wall / middles["ours"][0], used / middles["ours"][1]
                both = [f"{ratio:.1f}", f"{by_processor:.1f}"]
                if race == "fair":
                    ratios[name] = ratio
            lines.append(
                [
                    race,
                    name,
                    f"{wall:.2f}",
                    f"{min(walls):.2f}",
                    f"{max(walls):.2f}",
                    f"{used:.2f}",
                    *both,
                ]
            )
    print(f"\n{args.simulations} simulations, {args.rounds} rounds, whole processes")
    if args.dowhy_simulations and args.dowhy_simulations != args.simulations:
        print(
            f"DoWhy ran {args.dowhy_simulations} simulations: its times are SCALED, in "
            f"proportion to the simulations, which overstates them; run all {args.simulations} "
            "for the real ratio"
        )
    table(
        [
            "race",
            "engine",
            "median s",
            "min s",
            "max s",
            "processor s",
            "DoWhy / ours",
            "by processor s",
        ],
        lines,
    )
    if ratios:
        fastest = min(ratios, key=ratios.get)
        print(
            f"DoWhy / ours in the main race: {ratios['DoWhy, default']:.1f}; the fastest way "
            f"({fastest}): {ratios[fastest]:.1f}"
        )
    if args.faster_than_dowhy:
        verdict.check(
            bool(ratios) and min(ratios.values()) >= args.faster_than_dowhy,
            f"at least {args.faster_than_dowhy} times DoWhy's speed",
        )
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
