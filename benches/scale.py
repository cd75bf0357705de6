"""How large a workflow may be: many steps, many cells, many columns, many terms.

What it shows: seconds and peak memory of `check`, `plan`, `run` and a second `run` (all hits) on
- chain: STEPS steps, each reading the one before;
- fan: STEPS steps that read one table;
- cells: a matrix of CELLS cells, a step that reads each cell, one that reads all of them;
- columns: a table of COLUMNS columns and ROWS rows through `validate`, `sql`, `sample`,
  `describe` and two outputs;
- terms: a data test and a rule of TERMS conditions joined by AND.

How to run it: `python3 benches/scale.py [--galeras PATH] [--only chain,fan,cells,columns,terms]
[--verbs check,plan,run,rerun] [--steps 10000] [--cells 2000] [--columns 1000] [--rows 2000]
[--terms 10000] [--limit SECONDS] [--keep FOLDER]`. Take a build with the profile in question; the
default is `target/release/galeras`.

What it prints: a line per workflow and verb with wall seconds, processor seconds and the peak
resident memory of the process. Exit code 1 if a command fails, is ended by a signal, or takes
longer than `--limit`.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = """galeras: 1
steps:
  t:
    op: read
    with: { path: t.csv }
"""


def small_table(folder: Path) -> None:
    lines = [f"{i},{i * 7 % 11}" for i in range(10)]
    (folder / "t.csv").write_text("\n".join(["id,x", *lines]) + "\n")


def chain(folder: Path, sizes: argparse.Namespace) -> str:
    small_table(folder)
    lines, before = [TABLE], "t"
    for at in range(1, sizes.steps):
        query = f"SELECT id, x + {at} AS x FROM input"
        lines.append(f'  s{at}: {{ op: sql, from: {before}, with: {{ query: "{query}" }} }}\n')
        before = f"s{at}"
    return "".join([*lines, f"outputs:\n  last: {{ from: {before}, path: last.csv }}\n"])


def fan(folder: Path, sizes: argparse.Namespace) -> str:
    small_table(folder)
    steps = (
        f"  s{at}: {{ op: sample, from: t, with: {{ n: 3, seed: {at} }} }}\n"
        for at in range(1, sizes.steps)
    )
    return "".join([TABLE, *steps])


def cells(folder: Path, sizes: argparse.Namespace) -> str:
    small_table(folder)
    values = ", ".join(map(str, range(sizes.cells)))
    return f"""{TABLE}  cell:
    op: sample
    from: t
    matrix: {{ seed: [{values}] }}
    with: {{ n: 3, seed: "${{{{ matrix.seed }}}}" }}
  each:
    op: sql
    from: {{ drawn: cell, others: cell.rejects }}
    with: {{ query: "SELECT d.id, d.x FROM drawn d LEFT ANTI JOIN others o ON d.id = o.id" }}
  all:
    op: sql
    from: each[*]
    with: {{ query: "SELECT seed, sum(x) AS x FROM input GROUP BY seed", key: [seed] }}
outputs:
  all: {{ from: all, path: all.csv }}
"""


def columns(folder: Path, sizes: argparse.Namespace) -> str:
    names = [f"c{at}" for at in range(sizes.columns - 1)]
    with (folder / "wide.csv").open("w") as file:
        file.write(",".join(["id", *names]) + "\n")
        for row in range(sizes.rows):
            values = (
                f"{(row * 31 + at * 17) % 1000 / 8}" if at % 2 else f"v{(row + at) % 50}"
                for at in range(len(names))
            )
            file.write(",".join([f"r{row}", *values]) + "\n")
    numbers = names[1::2]
    return f"""galeras: 1
steps:
  wide:
    op: read
    with: {{ path: wide.csv }}
    assert: [{{ not_null: [{", ".join(names)}] }}]
  valid:
    op: validate
    from: wide
    with: {{ rules: [{{ name: positive, check: "c1 > 1" }}] }}
  filtered:
    op: sql
    from: valid
    with: {{ query: "SELECT * FROM input WHERE c3 >= 0" }}
  drawn:
    op: sample
    from: filtered
    with: {{ n: {sizes.rows // 2}, seed: 1 }}
  described:
    op: describe
    from: drawn
    with: {{ columns: [{", ".join(numbers)}] }}
outputs:
  drawn: {{ from: drawn, path: drawn.parquet }}
  lines: {{ from: drawn, path: drawn.jsonl }}
  described: {{ from: described, path: described.csv }}
"""


def terms(folder: Path, sizes: argparse.Namespace) -> str:
    small_table(folder)
    condition = " AND ".join(f"x <> {at + 100}" for at in range(sizes.terms))
    return f"""{TABLE}    assert: [{{ expr: "{condition}" }}]
  valid:
    op: validate
    from: t
    with: {{ rules: [{{ name: far, check: "{condition}" }}] }}
"""


WORKFLOWS = {"chain": chain, "fan": fan, "cells": cells, "columns": columns, "terms": terms}
VERBS = {"check": "check", "plan": "plan", "run": "run", "rerun": "run"}


def measure(galeras: Path, verb: str, folder: Path, limit: float) -> tuple:
    """Status, wall seconds, processor seconds and peak bytes of one command."""
    log = (folder / f"{verb}.log").open("w")
    started = time.monotonic()
    command = [galeras, VERBS[verb], "w.yaml"]
    process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    timer = threading.Timer(limit, lambda: os.kill(process.pid, signal.SIGKILL))
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - started
    return process.returncode, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--galeras", type=Path, default=ROOT / "target" / "release" / "galeras")
    parser.add_argument("--only", default=",".join(WORKFLOWS))
    parser.add_argument("--verbs", default=",".join(VERBS))
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--cells", type=int, default=2_000)
    parser.add_argument("--columns", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--terms", type=int, default=10_000)
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--keep", type=Path)
    sizes = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="galeras-scale-") as temporary:
        for name in sizes.only.split(","):
            folder = (sizes.keep or Path(temporary)) / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "w.yaml").write_text(WORKFLOWS[name](folder, sizes))
            for verb in sizes.verbs.split(","):
                galeras = sizes.galeras.resolve()
                status, wall, busy, peak = measure(galeras, verb, folder, sizes.limit)
                ended = "" if status == 0 else f"  ended with {status}"
                failed |= status != 0
                print(
                    f"{name:8} {verb:6} {wall:8.2f} s  {busy:8.2f} s busy "
                    f"{peak / 2**20:8.0f} MiB{ended}",
                    flush=True,
                )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
