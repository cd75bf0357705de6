"""The near-duplicates by `galeras run`."""

import argparse
import json
import shutil
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from dedup.measure import measured
from harness import command, parse_events

STEP = "unique"
WORKFLOW = """\
galeras: 1
name: dedup-bench
steps:
  methods: {{ op: read, with: {{ path: {file}, key: [id] }} }}
  unique:  {{ op: dedup, from: methods, with: {{ column: code{more} }} }}
outputs:
  clusters: {{ from: unique.clusters, path: clusters.parquet }}
  rejects:  {{ from: unique.rejects, path: rejects.parquet }}
  summary:  {{ from: unique.summary, path: summary.csv }}
"""


def by_galeras(args: argparse.Namespace, method: str, file: Path, work: Path) -> dict:
    """The median of runs on an empty cache."""
    import pyarrow.parquet

    more = "" if method == "exact" else f", method: {method}"
    flow = work / f"dedup_{method}.yaml"
    flow.write_text(WORKFLOW.format(file=json.dumps(str(file)), more=more))
    cache = work / "cache"
    out = work / "cache-out"  # what the harness' command names
    jobs = ["--jobs", str(args.jobs)] if args.jobs else []
    runs = []
    for _ in range(args.repeat):
        for folder in (cache, out):
            shutil.rmtree(folder, ignore_errors=True)
        found, text = measured(command(args.galeras, flow, cache, *jobs), work, cwd=work)
        events = parse_events(text)
        if found["code"] or not events or events[-1].get("event") != "finished":
            sys.exit(
                f"galeras run {flow} ended with {found['code']}\n{text[-2000:]}\n"
                f"{found.get('why', '')}"
            )
        steps = {step["step"]: step for step in events[-1]["steps"]}
        found["seconds"] = found["other"] = steps[STEP]["seconds"]
        found["steps"] = {name: step["seconds"] for name, step in steps.items()}
        runs.append(found)
    result = sorted(runs, key=lambda run: run["wall"])[(len(runs) - 1) // 2]
    result["other"] = statistics.median(run["other"] for run in runs)
    rows = pyarrow.parquet.read_table(
        next(iter(sorted(out.rglob("clusters.parquet")))), columns=["id", "cluster"]
    )
    groups = defaultdict(set)
    for key, cluster in zip(rows["id"].to_pylist(), rows["cluster"].to_pylist(), strict=True):
        groups[cluster].add(key)
    rejects = pyarrow.parquet.read_table(
        next(iter(sorted(out.rglob("rejects.parquet")))), columns=["id"]
    ).num_rows
    return result | {"components": list(groups.values()), "rejects": rejects, "cached": False}
