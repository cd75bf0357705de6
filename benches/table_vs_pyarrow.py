"""A table of a million rows from Python, against pyarrow's own reader of the same file.

What it shows: `Workflow.table("scores")`, which asks the program where the result is (and that it
is one of the workflow as it stands, unharmed), takes at most 1.2 times as long as
`pyarrow.parquet.read_table` of the file that it finds there, and gives an equal table. The rows
are scores of texts of the carried corpus, with the texts.

How to run it: `python3 benches/table_vs_pyarrow.py [--galeras PATH] [--rows 1000000] [--rounds 9]`.
pyarrow is installed from its registry into a virtual environment. Both take turns in one process,
and the first to go changes from round to round; files are in the system's cache. The module is
that of this clone.

What it prints: the file, the median time of each with the fastest and the slowest, the time of the
program alone in it, the ratio of the medians, and the violations. Exit code 1 if there is one.
"""

import os
import statistics
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import ROOT, Verdict, arguments, in_venv, pinned, run, table, work_folder  # noqa: E402

VERSIONS = {"pyarrow": "26.0.1"}
ASKED_RATIO = 1.2

WORKFLOW = """galeras: 1
name: million
params:
  rows: { type: int, default: 1000000, min: 1 }
steps:
  methods:
    op: methods
    with: { corpus: python-stdlib }
  pairs:
    op: sql
    from: methods
    with:
      key: [id]
      query: >
        SELECT lpad(CAST(n AS VARCHAR), 4, '0') || id AS id, id AS snippet_id, repo, path,
               fun_name, 'T' || CAST(n % 3 AS VARCHAR) AS treatment, n AS sample,
               substr(code, 1, 160) AS code, substr(code, n + 1, 160) AS prediction
        FROM input CROSS JOIN (SELECT unnest(generate_series(1, 80)) AS n)
  sampled:
    op: sample
    from: pairs
    with: { n: "${{ params.rows }}", seed: 1 }
  scores:
    op: score
    from: sampled
    with: { reference: code, metrics: [bleu, similarity, exact_match, rouge_l] }
"""


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    in_venv(*pinned(VERSIONS))
    import pyarrow.parquet as parquet

    os.environ["GALERAS_PROGRAM"] = os.path.abspath(args.galeras)
    sys.path.insert(0, str(ROOT / "python"))
    import galeras
    from galeras import _program

    work, verdict = work_folder(args), Verdict()
    workflow = work / "million.yaml"
    workflow.write_text(WORKFLOW)
    done = run(args.galeras, workflow, work / "cache", "--set", f"rows={args.rows}")
    print(f"a run of {done.wall:.1f} s made it")
    study = galeras.Workflow(workflow, cache=work / "cache", rows=args.rows)
    call = [str(workflow), f"--set=rows={args.rows}", f"--cache={work / 'cache'}", "scores"]
    path = _program.output(["path", *call]).decode().strip()
    metadata = parquet.ParquetFile(path).metadata
    size = Path(path).stat().st_size
    print(f"{metadata.num_rows:,} rows, {metadata.num_columns} columns, {size:,} bytes")
    print(
        f"{metadata.num_row_groups} row groups, {study.table('scores').nbytes:,} bytes as a table"
    )
    verdict.check(metadata.num_rows == args.rows, f"{metadata.num_rows:,} rows")
    verdict.check(study.table("scores").equals(parquet.read_table(path)), "the tables differ")

    def program() -> None:
        _program.output(["path", *call, "--format", "json"])

    readers = {
        'Workflow.table("scores")': lambda: study.table("scores"),
        "pyarrow.parquet.read_table": lambda: parquet.read_table(path),
        "the program alone": program,
    }
    seconds: dict = {name: [] for name in readers}
    for round_ in range(args.rounds):
        for name in [*readers][:: 1 if round_ % 2 else -1]:
            started = time.perf_counter()
            read = readers[name]()
            seconds[name].append(time.perf_counter() - started)
            del read

    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    rows = [
        [name, *(f"{s * 1000:.0f} ms" for s in (medians[name], min(taken), max(taken)))]
        for name, taken in seconds.items()
    ]
    table([f"of {args.rounds} rounds", "median", "fastest", "slowest"], rows)
    ours, theirs = (medians[name] for name in [*readers][:2])
    print(f"ratio {ours / theirs:.2f} (at most {ASKED_RATIO})")
    verdict.check(ours <= ASKED_RATIO * theirs, f"{ours / theirs:.2f} times as long as pyarrow")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
