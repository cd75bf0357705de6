"""Killed at any instant, the next run goes on and gives the same digests.

What it shows: a workflow that keeps all operators busy for many seconds (the carried corpus
through `methods -> ast -> validate -> sample -> cut`, and `read -> ast` over made methods)
runs undisturbed once. Then it is started and killed with SIGKILL at a random instant, again
and again on one store, until a start outlives its instant; that run must end well, with the
digests of the undisturbed one. Then the next round begins with an empty store, until 50
runs were killed. After every kill `cache verify` must find nothing. The instants are drawn
from a seed: half of them up to a third of the undisturbed time after the start, the others
within the time of the step that was hit least, of those not done yet, so that short steps are
hit too. A run after a kill that reports `reused_rows` for a step that was not finished has taken
up the parts that the killed run left.

How to run it: `python3 tests/scripts/kill_test.py [--kills 50] [--rows 100000] [--seed 1]
[--galeras PATH]`. Takes about 15 times the undisturbed run.

What it prints: a line per kill (instant, steps finished, steps at work), a table per step
(kills while it was at work, runs that reused parts of it, rows reused), and the violations.
Exit code 1 if there is one.
"""

import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import (  # noqa: E402
    Run,
    Verdict,
    arguments,
    command,
    environment,
    parse_events,
    run,
    stdlib_methods,
    table,
    work_folder,
    write_methods,
)

WORKFLOW = """\
galeras: 1
name: kill-test
steps:
  methods: { op: methods, with: { corpus: python-stdlib } }
  features: { op: ast, from: methods }
  valid:
    op: validate
    from: features
    with:
      rules:
        - { name: parses, check: "n_ast_errors = 0" }
        - { name: long_enough, check: "token_counts > 10" }
  sampled: { op: sample, from: valid, with: { n: 3000, seed: 42 } }
  testbed: { op: cut, from: sampled, with: { seed: 42 } }
  made: { op: read, with: { path: methods.jsonl } }
  made_features: { op: ast, from: made }
  made_cut: { op: cut, from: made_features, with: { seed: 7 } }
"""


def killed_run(args, workflow: Path, cache: Path, delay: float, step: str | None) -> Run:
    """Starts a run and kills it `delay` seconds after it, or after the start of `step`,
    unless it has ended by then."""
    events = cache.parent / "events.jsonl"
    mark = f'{{"event":"step_started","step":"{step}"'
    with events.open("wb") as out, (cache.parent / "stderr").open("wb") as err:
        started = time.perf_counter()
        process = subprocess.Popen(
            command(args.galeras, workflow, cache),
            cwd=cache.parent,
            env=environment(),
            stdout=out,
            stderr=err,
        )
        while step and process.poll() is None and mark not in events.read_text():
            time.sleep(0.005)
        try:
            code = process.wait(delay)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            code = process.wait()
        wall = time.perf_counter() - started
    return Run(code, wall, parse_events(events.read_text()), (cache.parent / "stderr").read_text())


def progress(events: list) -> tuple:
    """Finished steps, steps at work, and rows taken from parts per step that ran."""
    finished, working, reused = [], [], {}
    for event in events:
        match event["event"]:
            case "step_started":
                working.append(event["step"])
            case "step_total":
                reused[event["step"]] = event["reused"]
            case "step_finished":
                if event["step"] in working:
                    working.remove(event["step"])
                if event["status"] in ("hit", "ran"):
                    finished.append(event["step"])
    return finished, working, reused


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--fraction",
        type=float,
        default=1 / 3,
        help="latest instant of a kill, as a part of the undisturbed time",
    )
    args = parser.parse_args()
    work, verdict, rng = work_folder(args), Verdict(), random.Random(args.seed)

    workflow = work / "kill_test.yaml"
    workflow.write_text(WORKFLOW)
    write_methods(work / "methods.jsonl", stdlib_methods(args.galeras, work), args.rows)
    undisturbed = run(args.galeras, workflow, work / "undisturbed")
    expected = undisturbed.digests
    print(
        f"undisturbed: {undisturbed.wall:.1f} s, {len(expected)} ports, seed {args.seed}",
        flush=True,
    )

    def verify(cache: Path, when: str) -> None:
        done = subprocess.run(
            [
                command(args.galeras, workflow, cache)[0],
                "cache",
                "verify",
                "--cache",
                str(cache),
                "--format",
                "json",
            ],
            cwd=work,
            env=environment(),
            capture_output=True,
            text=True,
        )
        last = (parse_events(done.stdout) or [{}])[-1]
        verdict.check(
            done.returncode == 0 and last.get("findings") == 0,
            f"cache verify {when}: exit code {done.returncode}, {done.stdout} {done.stderr}",
        )

    hit, reuses, rows_reused = Counter(), Counter(), Counter()
    kills = rounds = runs_with_reuse = reruns = 0
    outer_started = time.perf_counter()
    while kills < args.kills:
        rounds += 1
        cache = work / f"round-{rounds}"
        previous: set = set()
        done: set = set()
        after_kill = False
        while True:
            delay, target = rng.uniform(0, undisturbed.wall * args.fraction), None
            if rng.random() < 0.5:
                left = [s for s in undisturbed.steps if s not in done]
                target = min(left or list(undisturbed.steps), key=lambda s: hit[s])
                delay = rng.uniform(0, undisturbed.steps[target]["seconds"])
            if kills == args.kills:
                delay, target = 3600, None  # The last run of all is left to end.
            result = killed_run(args, workflow, cache, delay, target)
            finished, working, reused = progress(result.events)
            when = f"in round {rounds} after kill {kills}"
            if after_kill:
                reruns += 1
                taken = {s: n for s, n in reused.items() if n and s in previous}
                runs_with_reuse += bool(taken)
                reuses.update(taken.keys())
                rows_reused.update(taken)
            if result.code == -signal.SIGKILL:
                kills += 1
                hit.update(working or ["(between steps)"])
                print(
                    f"kill {kills:3}  round {rounds}  at {result.wall:6.2f} s  "
                    f"{len(finished)} done, at work: {', '.join(working) or '-'}",
                    flush=True,
                )
                verify(cache, f"in round {rounds} after kill {kills}")
                previous, after_kill = set(working), True
                done = set(finished)
                continue
            if verdict.check(result.code == 0, f"exit code {result.code} {when}: {result.stderr}"):
                for port, (digest, rows) in result.digests.items():
                    verdict.check(
                        (digest, rows) == expected.get(port),
                        f"{port} is {digest} ({rows} rows), expected {expected.get(port)}, {when}",
                    )
                verdict.check(result.digests.keys() == expected.keys(), f"ports differ {when}")
            verify(cache, f"at the end of round {rounds}")
            rests = [p for p in cache.glob("tmp/**/*") if p.is_file()]
            print(
                f"round {rounds} ends after kill {kills}: {len(result.events)} events, "
                f"{len(rests)} temporary files left",
                flush=True,
            )
            break
        if not verdict.violations:
            shutil.rmtree(cache)
            shutil.rmtree(cache.parent / f"{cache.name}-out", ignore_errors=True)

    print()
    table(
        ["step", "kills at work", "runs that took up parts", "rows taken up"],
        [[s, hit[s], reuses[s], rows_reused[s]] for s in [*undisturbed.steps, "(between steps)"]],
    )
    print(
        f"{kills} kills in {rounds} rounds, {time.perf_counter() - outer_started:.0f} s; "
        f"{runs_with_reuse} of {reruns} runs after a kill took up finished parts"
    )
    verdict.check(runs_with_reuse > 0, "no run took up finished parts")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
