"""A large history costs a few times what `git log -p` costs, and kills cost little.

What it shows: the Python methods of a window of one repository are mined into an empty store. The
processor time is compared with that of `git log -p` over the same window, in the same run; the
most memory that the process had and the number of processors that it kept busy are measured. Then
the same is run on a new store and killed with SIGKILL at random instants, drawn from a seed over
the time of an undisturbed run: each start works from one instant to the next and is killed, the
last one ends. All starts together must not work much longer than an undisturbed run, and the
digests must be its own.

How to run it: `python3 benches/mine_large.py --repo PATH --since 2015-01-01 --until 2027-01-01
[--branch NAME] [--repeat 1] [--kills 10] [--rounds 1] [--seed 1] [--jobs N] [--memory SIZE]
[--at-most 4] [--no-requirements] [--galeras PATH]`. The repository may be bare; it is only read.
The window is since <= committer time < until, in UTC. The demand on memory, 1 GiB, is one on a run
with `--memory 512MiB`: without it, a run may take a quarter of the machine.

What it prints: seconds of the wall and of the processors of both, their ratio, the memory, the
processors kept busy, each kill with the work up to it, the ratio of the work with kills to that
without, the digests. Exit code 1 if a requirement does not hold.
"""

import argparse
import datetime
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import Run, Verdict, arguments, command, environment, parse_events, table, work_folder  # noqa: E402
from mining.by_galeras import git_log, workflow  # noqa: E402
from mining.processes import git_environment  # noqa: E402

MEMORY_MIB, WITH_KILLS = 1024, 1.3


@dataclass
class Start:
    """A start of the program: how it ended and what it took."""

    run: Run
    wall: float
    processor: float
    memory_mib: float


def start(args: argparse.Namespace, flow: Path, cache: Path, seconds: float | None = None) -> Start:
    """Runs the workflow, and kills it after so many seconds."""
    more = ["--jobs", str(args.jobs)] if args.jobs else []
    more += ["--memory", args.memory] if args.memory else []
    with (flow.parent / "events").open("w+b") as out, (flow.parent / "errors").open("w+b") as err:
        began = time.perf_counter()
        process = subprocess.Popen(
            command(args.galeras, flow, cache, *more),
            cwd=flow.parent,
            env=environment(),
            stdout=out,
            stderr=err,
        )
        # Not `send_signal`, which would wait for the process first.
        kill = threading.Timer(seconds or 0, os.kill, (process.pid, 9))
        if seconds is not None:
            kill.start()
        _, status, used = os.wait4(process.pid, 0)
        kill.cancel()
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        events = parse_events(out.read().decode())
        run = Run(process.returncode, wall, events, err.read().decode())
    return Start(run, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def empty(cache: Path) -> Path:
    for folder in (cache, cache.parent / f"{cache.name}-out"):
        shutil.rmtree(folder, ignore_errors=True)
    return cache


def against_git(args: argparse.Namespace, flow: Path, verdict: Verdict) -> Start:
    """The undisturbed run of median processor time."""
    env = git_environment(flow.parent)
    git_log(args, env)  # so that nobody reads the objects from the disk first
    lines, starts, ratios = [], [], []
    for at in range(args.repeat):
        wall, used = git_log(args, env)
        one = start(args, flow, empty(flow.parent / "cache"))
        starts.append(one)
        ratios.append(one.processor / used)
        lines.append(
            [
                at + 1,
                f"{wall:.2f}",
                f"{used:.2f}",
                f"{one.wall:.2f}",
                f"{one.processor:.2f}",
                f"{ratios[-1]:.2f}",
                f"{one.processor / one.wall:.2f}",
                f"{one.memory_mib:.0f}",
            ]
        )
    header = ["run", "git log s", "cpu s", "ours s", "cpu s", "ratio of cpu", "busy", "MiB"]
    table(header, lines)
    for (step, port), (digest, rows) in starts[0].run.digests.items():
        print(f"{step}.{port}: {rows} rows, {digest}")
    ratio = statistics.median(ratios)
    memory = max(one.memory_mib for one in starts)
    if not args.no_requirements:
        verdict.check(ratio <= args.at_most, f"{ratio:.2f} times git log -p, not {args.at_most}")
        verdict.check(memory <= MEMORY_MIB, f"{memory:.0f} MiB of memory")
    return sorted(starts, key=lambda one: one.processor)[len(starts) // 2]


def with_kills(
    args: argparse.Namespace, flow: Path, verdict: Verdict, undisturbed: Start, rng: random.Random
) -> float:
    """The work of all starts, over that of an undisturbed run."""
    instants = sorted(rng.uniform(0, undisturbed.wall) for _ in range(args.kills))
    gaps = [after - before for before, after in zip([0, *instants], instants, strict=False)]
    cache = empty(flow.parent / "cache")
    starts = []
    for gap in gaps:
        starts.append(start(args, flow, cache, gap))
        if starts[-1].run.code == 0:
            print("  a start ended before it was killed")
            break
    if starts[-1].run.code != 0:
        starts.append(start(args, flow, cache))
    work = sum(one.processor for one in starts)
    ratio = work / undisturbed.processor
    walls = sum(one.wall for one in starts) / undisturbed.wall
    worked = ", ".join(f"{one.wall:.1f}" for one in starts)
    print(f"{len(gaps)} kills: starts of {worked} s; processor {work:.1f} s, {ratio:.2f} times")
    print(f"  ({walls:.2f} times by the wall)")
    last = starts[-1].run
    verdict.check(last.code == 0, f"the last start ended with {last.code}: {last.stderr}")
    verdict.check(last.digests == undisturbed.run.digests, "digests differ after kills")
    return ratio


def main() -> int:
    parser = arguments(__doc__)
    day = datetime.date.fromisoformat
    parser.add_argument("--repo", type=Path, required=True, help="a local repository, bare or not")
    parser.add_argument("--since", type=day, required=True, help="first day (UTC)")
    parser.add_argument("--until", type=day, required=True, help="day behind the last one (UTC)")
    parser.add_argument("--branch", help="instead of HEAD")
    parser.add_argument("--repeat", type=int, default=1, help="runs of git log and of ours")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1, help="repetitions with kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, help="of galeras run")
    parser.add_argument("--memory", help="of galeras run")
    parser.add_argument("--at-most", type=float, default=4, help="times the cpu of git log -p")
    parser.add_argument("--no-requirements", action="store_true", help="only report")
    args = parser.parse_args()
    args.repo = args.repo.resolve()
    work, verdict = work_folder(args), Verdict()
    print(
        f"{args.repo.name}, {args.since} <= committer time < {args.until} UTC; "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    flow = workflow(args, work, False)
    undisturbed = against_git(args, flow, verdict)
    rng = random.Random(args.seed)
    rounds = args.rounds if args.kills else 0
    ratios = [with_kills(args, flow, verdict, undisturbed, rng) for _ in range(rounds)]
    if ratios:
        ratio = statistics.median(ratios)
        print(f"work with {args.kills} kills: {ratio:.2f} times that of an undisturbed run")
        if not args.no_requirements:
            verdict.check(ratio <= WITH_KILLS, f"kills: {ratio:.2f} times, not {WITH_KILLS}")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
