"""A rerun costs what changed.

What it shows: 100,000 distinct methods, made from the carried corpus by other names and
numbers, go through `read -> ast`; then one per cent of the rows is changed and the workflow
runs again. The step `features` must compute exactly the changed rows, in under 5 % of its
first time, and give the digests of a run on the changed input in an empty store.

How to run it: `python3 benches/row_reuse.py [--rows 100000] [--repetitions 3]
[--galeras PATH]`.

What it prints: per repetition the changed and the computed rows, the seconds of `features`
cold and warm, their ratio, and whether the digests agree. Exit code 1 if anything does not
hold.
"""

import shutil
import statistics
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import Verdict, arguments, run, stdlib_methods, table, work_folder, write_methods  # noqa: E402

LIMIT = 0.05
WORKFLOW = """\
galeras: 1
name: row-reuse
steps:
  data:     { op: read, with: { path: methods.jsonl } }
  features: { op: ast, from: data }
"""


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=3)
    args = parser.parse_args()
    work, verdict = work_folder(args), Verdict()

    texts = stdlib_methods(args.galeras, work)
    workflow, data = work / "row_reuse.yaml", work / "methods.jsonl"
    workflow.write_text(WORKFLOW)
    first, second = work / "first.jsonl", work / "second.jsonl"
    write_methods(first, texts, args.rows)
    changed = write_methods(second, texts, args.rows, lambda row: row % 100 == 37)
    print(f"{args.rows} rows, {first.stat().st_size / 1e6:.0f} MB, {changed} changed", flush=True)

    shutil.copy(second, data)
    fresh = run(args.galeras, workflow, work / "fresh")
    shutil.rmtree(work / "fresh")
    rows, ratios = [], []
    for at in range(args.repetitions):
        cache = work / "cache"
        shutil.copy(first, data)
        cold = run(args.galeras, workflow, cache).steps["features"]
        shutil.copy(second, data)
        again = run(args.galeras, workflow, cache)
        warm = again.steps["features"]
        ratios.append(warm["seconds"] / cold["seconds"])
        same = again.digests == fresh.digests
        verdict.check(cold["computed_rows"] == args.rows, f"cold: {cold['computed_rows']} computed")
        verdict.check(
            warm["computed_rows"] == changed and warm["reused_rows"] == args.rows - changed,
            f"{changed} rows changed, {warm['computed_rows']} computed, "
            f"{warm['reused_rows']} reused",
        )
        verdict.check(same, "the digests differ from those of a fresh run")
        rows.append(
            [
                at + 1,
                changed,
                warm["computed_rows"],
                warm["reused_rows"],
                f"{cold['seconds']:.2f}",
                f"{warm['seconds']:.2f}",
                f"{ratios[-1]:.1%}",
                "equal" if same else "DIFFER",
            ]
        )
        shutil.rmtree(cache)
    table(["run", "changed", "computed", "reused", "cold s", "warm s", "ratio", "digests"], rows)
    median = statistics.median(ratios)
    verdict.check(median < LIMIT, f"the rerun takes {median:.1%} of the cold time, not {LIMIT:.0%}")
    print(f"median ratio {median:.1%}, limit {LIMIT:.0%}")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
