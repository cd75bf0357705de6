"""The changed methods of a history as PyDriller gives them, mined once or taken from a file."""

import argparse
import datetime
import os
import pickle
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from mining.processes import git_environment, processor_seconds

# Started anew as the process that is measured.
SCRIPT = Path(__file__).resolve().parents[1] / "mine_vs_pydriller.py"
PINS = {
    "pydriller": "2.12",
    "lizard": "1.24.3",
    "GitPython": "3.2.1",
    "pyarrow": "26.0.1",
    "tree-sitter": "0.26.1",
    "tree-sitter-python": "0.25.0",
}
COMPARED = ["pydriller", "lizard", "GitPython"]
FORMAT = 1


@dataclass
class Method:
    """A method as PyDriller gives it, in its version of after the commit."""

    commit: str
    path: str
    how: str  # "new"; "old": listed for a deleted line, as its old version; "deleted"
    lines: tuple  # where it may start; more than one if the name does not tell
    old: tuple  # the old version's lines
    name: str
    parameters: tuple
    start: int = 0
    end: int = 0
    complexity: int = 0
    nloc: int = 0
    token_counts: int = 0
    text: str = ""


def mine_by_pydriller(repo: str, first, last, branch: str | None) -> dict:
    """What a researcher would write, and no more."""
    from pydriller import ModificationType, Repository

    repository = Repository(
        repo,
        since=first,
        to=last,
        only_in_branch=branch,
        only_no_merge=True,
        only_modifications_with_file_types=[".py"],
    )
    commits, found, errors = [], [], []
    used, started = processor_seconds(), time.perf_counter()
    for commit in repository.traverse_commits():
        commits.append(commit.hash)
        for file in commit.modified_files:
            if not file.filename.endswith(".py") or file.change_type is ModificationType.DELETE:
                continue
            try:
                changed = file.changed_methods
                if not changed:
                    continue
                methods = file.methods
                lines = (file.source_code or "").split("\n")
            except Exception as error:  # one bad file must not end the run
                errors.append((commit.hash, file.new_path, repr(error)))
                continue
            of_now = {id(method) for method in methods}
            for method in changed:
                # PyDriller mixes methods of both versions: take that of the new one.
                how, at, old = "new", (method.start_line,), ()
                if id(method) not in of_now:
                    same = [m for m in methods if m.name == method.name]
                    same = [m for m in same if m.parameters == method.parameters] or same
                    how, old = "old", (method.start_line, method.end_line)
                    at = tuple(m.start_line for m in same)
                    if not same:
                        found.append(
                            (commit.hash, file.new_path, "deleted", (), old, method.name, ())
                        )
                        continue
                    method = same[0]
                found.append(
                    (
                        commit.hash,
                        file.new_path,
                        how,
                        at,
                        old,
                        method.name,
                        tuple(method.parameters),
                        method.start_line,
                        method.end_line,
                        method.complexity,
                        method.nloc,
                        method.token_count,
                        "\n".join(lines[method.start_line - 1 : method.end_line]),
                    )
                )
    return {
        "seconds": time.perf_counter() - started,
        "processor": processor_seconds() - used,
        "commits": commits,
        "methods": found,
        "errors": errors,
    }


def pydriller(args: argparse.Namespace, work: Path, head: str) -> dict:
    """PyDriller's result: from the cache file, or by one run in a process of its own."""
    made_of = {
        "format": FORMAT,
        "versions": {name: PINS[name] for name in COMPARED},
        "head": head,
        "since": str(args.since),
        "until": str(args.until),
        "branch": args.branch,
    }
    cache = args.pydriller_cache
    if cache and cache.exists():
        result = pickle.loads(cache.read_bytes())
        other = [key for key, value in made_of.items() if result["made_of"].get(key) != value]
        if other:
            sys.exit(f"{cache} is of another {', '.join(other)}: remove it to mine again")
        result["cached"] = True
        print(
            f"PyDriller: CACHED result and time, from {cache}, measured {result['when']} on "
            f"{result['cores']} cores, load {result['load'][0]:.1f} before and "
            f"{result['load'][1]:.1f} after",
            flush=True,
        )
        return result
    clone = work / "pydriller.git"
    env = git_environment(work)
    subprocess.run(
        ["git", "clone", "-q", "--bare", "--shared", str(args.repo), str(clone)],
        env=env,
        check=True,
    )
    out = work / "pydriller.pickle"
    load = os.getloadavg()[0]
    print("PyDriller: mining (this takes minutes)", flush=True)
    subprocess.run(
        [
            sys.executable,
            str(SCRIPT),
            "--repo",
            str(clone),
            "--since",
            str(args.since),
            "--until",
            str(args.until),
            "--pydriller-worker",
            str(out),
            *(["--branch", args.branch] if args.branch else []),
        ],
        env={**env, "GALERAS_IN_VENV": "1"},
        check=True,
    )
    result = pickle.loads(out.read_bytes())
    result |= {
        "made_of": made_of,
        "load": (load, os.getloadavg()[0]),
        "cores": os.cpu_count(),
        "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    if cache:
        cache.parent.mkdir(parents=True, exist_ok=True)
        part = cache.with_name(cache.name + ".part")
        part.write_bytes(pickle.dumps(result))
        part.replace(cache)
    result["cached"] = False
    return result
