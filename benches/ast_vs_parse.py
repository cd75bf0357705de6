"""What the `ast` step costs over a bare parse.

What it shows: `features` of the quickstart, on an empty store and all cores, against
tree-sitter alone: one thread, the texts of `methods`, the same crate versions
(`benches/bare_parse.rs`), divided by the cores used. The limit is 1.5.

How to run it: `python3 benches/ast_vs_parse.py [--repetitions 3] [--jobs N]
[--bare PATH] [--galeras PATH]`. Without `--bare` the bench is built by cargo.

What it prints: per repetition the load of the machine, the seconds of the step, of the bare
parse that ran right before and after it, and their ratio; the median ratio. Exit code 1 if
that is over the limit. On a busy machine two threads do not get two cores while the single
thread of the bare parse gets one; there the ratio of processor seconds (of the whole process
that ran the step, to those of the bare parse) says more.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import QUICKSTART, ROOT, arguments, port_blob, run, table, work_folder  # noqa: E402

LIMIT = 1.5


def bare_parse(bare: str | None, file: Path) -> dict:
    build = ["cargo", "bench", "-q", "--locked", "--bench", "bare_parse", "--"]
    program = [bare] if bare else build
    done = subprocess.run(
        [*program, str(file), "code", "3"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--bare", help="a built bare_parse")
    args = parser.parse_args()
    if args.bare:
        args.bare = os.path.abspath(args.bare)
    work = work_folder(args)

    rows, ratios, cpu_ratios, methods_ratios = [], [], [], []
    before = None
    for at in range(args.repetitions):
        cache = work / f"cache-{at}"
        load = os.getloadavg()[0]
        jobs = ["--jobs", str(args.jobs)]
        first = run(args.galeras, QUICKSTART, cache, "--select", "methods", *jobs).steps
        used = processor_seconds()
        steps = run(args.galeras, QUICKSTART, cache, "--select", "features", *jobs).steps
        used = processor_seconds() - used
        texts = port_blob(cache, steps["methods"]["key"])
        after = bare_parse(args.bare, texts)
        if before is None:
            before = after
        # Other load on the machine hits both sides: take the bare runs around the step.
        bare = statistics.median(before["seconds"] + after["seconds"])
        before = after
        step, methods = steps["features"], first["methods"]
        if step["computed_rows"] != after["texts"]:
            sys.exit(f"{step['computed_rows']} rows computed, {after['texts']} texts parsed")
        ratios.append(step["seconds"] / (bare / args.jobs))
        bare_cpu = min(s for s in [*after["cpu_seconds"], *after["seconds"]] if s)
        cpu_ratios.append(used / bare_cpu)
        methods_ratios.append(methods["seconds"] / (bare / args.jobs))
        rows.append(
            [
                at + 1,
                f"{load:.1f}",
                step["computed_rows"],
                f"{after['bytes'] / 1e6:.1f}",
                args.jobs,
                f"{methods['seconds']:.2f}",
                f"{step['seconds']:.3f}",
                f"{bare:.3f}",
                f"{bare / args.jobs:.3f}",
                f"{ratios[-1]:.2f}",
                f"{used:.2f}",
                f"{bare_cpu:.2f}",
                f"{cpu_ratios[-1]:.2f}",
            ]
        )
    table(
        [
            "run",
            "load",
            "methods",
            "MB",
            "jobs",
            "methods s",
            "features s",
            "bare s",
            "bare s/jobs",
            "ratio",
            "cpu s",
            "bare cpu s",
            "cpu ratio",
        ],
        rows,
    )
    median = statistics.median(ratios)
    print(
        f"features: median ratio {median:.2f}, range {min(ratios):.2f} to {max(ratios):.2f}, "
        f"limit {LIMIT}"
    )
    print(f"processor seconds: median ratio {statistics.median(cpu_ratios):.2f}")
    print(
        f"methods (for information; it parses whole files): {statistics.median(methods_ratios):.2f}"
    )
    return int(median > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
