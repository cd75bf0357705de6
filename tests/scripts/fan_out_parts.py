"""Parts end between input rows, never inside one.

What it shows: operators that make several rows of one (`methods`: a file) leave parts that
hold all rows of an input row or none. A folder with one file of more methods than a batch
has rows, slow enough to parse that a part is due right after its first batch, is run; then
another file is changed and the rows of the first are taken from the parts. Every method must
be there, with the digest of a run in an empty store. The same after a SIGKILL at instants
all over the first run.

How to run it: `python3 tests/scripts/fan_out_parts.py [--kills 5] [--galeras PATH]`.

What it prints: a line per run with its rows and digest, the largest memory of a run, and the
violations. Exit code 1 if there is one.
"""

import resource
import signal
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import Verdict, arguments, command, environment, run, work_folder  # noqa: E402

METHODS = 3000
WORKFLOW = """\
galeras: 1
name: fan-out
steps:
  methods: { op: methods, with: { dir: src } }
"""


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--kills", type=int, default=5)
    args = parser.parse_args()
    work, verdict = work_folder(args), Verdict()
    source = work / "src"
    source.mkdir()
    workflow = work / "fan_out.yaml"
    workflow.write_text(WORKFLOW)
    methods = "".join(f"def f{i}(a): return a\n" for i in range(METHODS))
    # A long table slows the parser; the error makes it count recoveries, which is slower yet.
    slow = "TABLE = [" + "(1,[2])," * 75_000 + "]\nx = = 1 )\n"
    (source / "big.py").write_text(methods + slow)
    small = source / "small.py"

    def check(cache: Path, expected: int, what: str, digests=None):
        result = run(args.galeras, workflow, cache, check=False)
        if not verdict.check(
            result.code == 0,
            f"{what}: exit code {result.code}: {result.steps['methods']['detail']}",
        ):
            return None
        step = result.steps["methods"]
        print(
            f"{what}: {step['rows']} rows, {step['computed_rows']} files computed, "
            f"{step['reused_rows']} reused, {step['digest'][:12]}, {step['seconds']:.1f} s",
            flush=True,
        )
        verdict.check(step["rows"] == expected, f"{what}: {step['rows']} rows, not {expected}")
        verdict.check(digests in (None, result.digests), f"{what}: digests differ from a fresh run")
        return result

    small.write_text("def g(): return 1\n")
    first = check(work / "cache", METHODS + 1, "first run")
    small.write_text("def g(): return 1\ndef h(): return 2\n")
    fresh = check(work / "fresh", METHODS + 2, "fresh run after the edit")
    expected = fresh.digests if fresh else None
    check(work / "cache", METHODS + 2, "rerun after the edit", expected)
    for kill in range(1, args.kills + 1):
        cache = work / f"kill-{kill}"
        process = subprocess.Popen(
            command(args.galeras, workflow, cache),
            cwd=work,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait((first.wall if first else 5) * kill / (args.kills + 1))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        check(cache, METHODS + 2, f"rerun after kill {kill}", expected)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    size = (source / "big.py").stat().st_size / 1e6
    print(f"largest memory {memory:.0f} MiB, for a file of {size:.1f} MB with {METHODS} methods")
    verdict.check(memory < 1024, f"{memory:.0f} MiB of memory for a file of {size:.1f} MB")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
