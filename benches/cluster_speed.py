"""What a cluster gains, and what it costs.

What it measures, on repositories of this machine: mining, features, prompts, echoes and scores,
embedded with one thread, on one executor of one slot and on two; and embedded with all processors
beside one executor with as many slots.

How to run it: `python3 benches/cluster_speed.py REPOSITORY... [--since DAY] [--until DAY]
[--galeras PATH]`, with a release build that has the feature `cluster`.

What it prints: seconds, the ratios, and the share of the coordinator.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from cluster.processes import Cluster  # noqa: E402
from harness import arguments, command, environment, parse_events, table, work_folder  # noqa: E402

WORKFLOW = """\
galeras: 1
name: speed
steps:
  repos: {{ op: query, with: {{ repos: [{repositories}] }} }}
  mined: {{ op: mine, from: repos, with: {{ since: {since}, until: {until} }} }}
  features: {{ op: ast, from: mined }}
  cuts: {{ op: cut, from: features, with: {{ seed: 42 }} }}
  prompts:
    op: prompt
    from: cuts
    with: {{ treatments: {{ control: "Complete this: {{{{ random_cut }}}}" }} }}
  echoes: {{ op: generate, from: prompts, with: {{ provider: echo }} }}
  scores: {{ op: score, from: echoes, with: {{ reference: code }} }}
outputs:
  scores: {{ from: scores, path: scores.parquet }}
"""


def timed(galeras: str, workflow: Path, cache: Path, *more: str) -> tuple:
    """Wall seconds, processor seconds of the process, and the digests."""
    run = command(galeras, workflow, cache, *more)
    before = os.times()
    started = time.perf_counter()
    done = subprocess.run(run, env=environment(), capture_output=True, text=True)
    wall = time.perf_counter() - started
    after = os.times()
    events = parse_events(done.stdout)
    if done.returncode:
        sys.exit(f"exit {done.returncode}\n{done.stderr[-2000:]}")
    steps = {s["step"]: s for s in events[-1]["steps"]}
    digests = {name: step["digest"] for name, step in steps.items()}
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    return wall, spent, digests, steps


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--since", default="2022-01-01")
    parser.add_argument("--until", default="2022-12-31")
    args = parser.parse_args()
    work = work_folder(args)
    workflow = work / "speed.yaml"
    names = ", ".join(str(path.resolve()) for path in args.repositories)
    text = WORKFLOW.format(repositories=names, since=args.since, until=args.until)
    workflow.write_text(text)
    processors = str(os.cpu_count())
    rows, found = [], {}

    def embedded(name: str, jobs: str) -> None:
        found[name] = timed(args.galeras, workflow, work / name, "--jobs", jobs)

    def spread(name: str, executors: int, slots: int) -> None:
        cluster = Cluster(args.galeras, work / f"{name}-logs", str(work / name))
        for _ in range(executors):
            cluster.add(slots)
        found[name] = timed(args.galeras, workflow, work / name, "--engine", cluster.address)
        cluster.end()

    embedded("embedded-1", "1")
    spread("one-executor", 1, 1)
    spread("two-executors", 2, 1)
    embedded("embedded-all", processors)
    spread("one-with-all", 1, int(processors))
    expected = found["embedded-1"][2]
    for name, (wall, spent, digests, steps) in found.items():
        if digests != expected:
            sys.exit(f"{name}: other digests")
        each = " ".join(f"{s['step']} {s['seconds']:.1f}" for s in steps.values())
        rows.append([name, f"{wall:.1f}", f"{spent:.1f}", each])
    table(["run", "seconds", "processor (run)", "steps"], rows)
    two = found["one-executor"][0] / found["two-executors"][0]
    whole = found["one-with-all"][0] / found["embedded-all"][0]
    share = found["two-executors"][1] / found["embedded-1"][1]
    print(f"1 -> 2 executors: {two:.2f} times as fast")
    print(f"one executor with all processors / embedded: {whole:.2f}")
    print(f"the coordinator's processor time / that of all the work: {100 * share:.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
