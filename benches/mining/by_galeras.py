"""The same window by `git log -p` and by `galeras run`, and the rows of the latter."""

import argparse
import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from harness import run
from mining.processes import ends, processor_seconds

FEATURES = ["complexity", "nloc", "token_counts"]


def git_log(args: argparse.Namespace, env: dict) -> tuple:
    """Wall and processor seconds of `git log -p` over the window."""
    first, last = ends(args)
    used, started = processor_seconds(), time.perf_counter()
    subprocess.run(
        [
            "git",
            "-C",
            str(args.repo),
            "log",
            "-p",
            "--no-merges",
            f"--since={first.isoformat()}",
            f"--until={last.isoformat()}",
            *([args.branch] if args.branch else []),
            "--",
            "*.py",
        ],
        env=env,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - started, processor_seconds() - used


def logged(args: argparse.Namespace, env: dict) -> int:
    """How many commits `git log` prints: with a path it leaves out simplified branches."""
    first, last = ends(args)
    return len(
        subprocess.run(
            [
                "git",
                "-C",
                str(args.repo),
                "log",
                "--format=%H",
                "--no-merges",
                f"--since={first.isoformat()}",
                f"--until={last.isoformat()}",
                *([args.branch] if args.branch else []),
                "--",
                "*.py",
            ],
            env=env,
            stdout=subprocess.PIPE,
            check=True,
        ).stdout.split()
    )


def workflow(args: argparse.Namespace, work: Path, features: bool) -> Path:
    branch = f", branch: {json.dumps(args.branch)}" if args.branch else ""
    text = (
        "galeras: 1\nname: bench-mine\nsteps:\n"
        f"  repos:   {{ op: query, with: {{ repos: [{json.dumps(str(args.repo))}] }} }}\n"
        f"  methods: {{ op: mine, from: repos, with: {{ since: {args.since}, "
        f"until: {args.until}, nested: true{branch} }} }}\n"
    )
    if features:
        text += "  features: { op: ast, from: methods }\n"
    source = "features" if features else "methods"
    text += f"outputs:\n  methods: {{ from: {source}, path: methods.parquet }}\n"
    path = work / f"bench_mine_{source}.yaml"
    path.write_text(text)
    return path


def mine_by_galeras(args: argparse.Namespace, work: Path, features: bool) -> tuple:
    """One run on an empty cache: wall and processor seconds, the output, the steps."""
    cache = work / "cache"
    out = work / "cache-out"
    for folder in (cache, out):
        shutil.rmtree(folder, ignore_errors=True)
    flow = workflow(args, work, features)
    jobs = ["--jobs", str(args.jobs)] if args.jobs else []
    used = processor_seconds()
    result = run(args.galeras, flow, cache, *jobs)
    used = processor_seconds() - used
    file = next(iter(sorted(out.rglob("methods.parquet"))), None)
    if file is None:
        sys.exit(f"the run wrote no methods.parquet to {out}")
    return result.wall, used, file, result.steps


COLUMNS = [
    "commit_id",
    "path",
    "fun_name",
    "qualified_name",
    "start_line",
    "end_line",
    "code",
    "change",
]
PLACE = ["commit_id", "path", "qualified_name", "start_line"]


@dataclass
class Row:
    """A row of `mine`, with the features of `ast`."""

    commit: str
    path: str
    name: str
    qualified: str
    start: int
    end: int
    code: str
    change: str
    complexity: int | None = None
    nloc: int | None = None
    token_counts: int | None = None


def read_columns(file: Path, names: list):
    import pyarrow.parquet

    columns = pyarrow.parquet.read_table(file, columns=names)
    return zip(*(columns[name].to_pylist() for name in names), strict=True)


def read_rows(methods: Path, features: Path) -> list:
    """The rows of `mine`, with the numbers of `ast` where it gives them."""
    numbers = {
        tuple(values[: len(PLACE)]): values[len(PLACE) :]
        for values in read_columns(features, [*PLACE, *FEATURES])
    }
    rows = [Row(*values) for values in read_columns(methods, COLUMNS)]
    for row in rows:
        found = numbers.get((row.commit, row.path, row.qualified, row.start))
        if found:
            row.complexity, row.nloc, row.token_counts = found
    return rows
