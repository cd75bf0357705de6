#!/usr/bin/env python3
"""Oracles of the standard library and of repositories: how many, how good, how stable.

What it shows, in parts that `--only` selects:

- library: the bundled library on `python3` by its doctests, and the own library of each `--python`
  by its doctests and the test files that are listed here: methods with an oracle by source, and why
  the others have none; those with three cases and more, and their median mutation score; the wall
  time; then each method runs three times against its own cases next to busy processes, and a rerun
  executes nothing
- changed: a copy of some modules, one method of which is changed: the oracle of its module alone is
  made again
- same: the digests of oracles under another hash seed, time zone, locale, working folder, number of
  cores and, for root, user
- repositories: methods that commits of a window changed in each of `--repos` (clones, with commas):
  how many get an oracle from the repository's own tests and doctests, and why the others do not;
  the first `--python` may be that of a virtual environment with pytest
- damaged: workflows/executed.yaml with its n-gram model: the reference passes, its beginning does
  not, and mutants fail at the rate of the mutation score; then one changed token of each method,
  made here; and the rank correlations of text scores with passing, with the figure at `--figure`

How to run it: `python3 benches/oracles.py [--only TEXT] [--python FILE]… [--repos A,B,C]
[--since 2024-01-01] [--until 2025-01-01] [--n 200] [--figure PATH] [--galeras PATH]
[--work FOLDER]`.

What it prints: a table for each part. Exit code 1 if fewer than 800 methods of an own library have
three cases, a median mutation score is less than 0.6, a method fails its own cases, a rerun
executes anything, a changed method makes another module's oracle again, digests differ, an end is
not 0 or 1, or changed tokens fail at a rate more than 0.1 from the mean mutation score.
"""

import ast
import csv
import io
import json
import multiprocessing
import os
import random
import shutil
import statistics
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import (  # noqa: E402
    ROOT,
    Verdict,
    arguments,
    command,
    environment,
    parse_events,
    run,
    table,
    work_folder,
)

CORES = os.cpu_count() or 1
GRADES = "id, path, qualified_name, code, cases_total, doctests, calls, mutated, coverage, "
GRADES += "mutation_score"
WORKFLOW = """\
galeras: 1
name: oracles
steps:
%(methods)s
  oracles:
    op: oracle
    from: methods
    with: { seed: 40%(oracle)s }
  grades:
    op: sql
    from: oracles
    with: { query: "SELECT %(columns)s FROM input", key: [id] }
%(more)s
outputs:
  grades:  { from: grades,          path: grades.jsonl, rows: { min: 0 } }
  modules: { from: oracles.modules, path: modules.jsonl, rows: { min: 0 } }
  rejects: { from: oracles.rejects, path: rejects.jsonl }
%(outputs)s"""
LIBRARY = "  methods: { op: methods, with: { corpus: python-stdlib } }"
OWN_LIBRARY = """\
  all: { op: methods, with: { dir: %(folder)s } }
  methods:
    op: sql
    from: all
    with:
      query: "SELECT * FROM input WHERE regexp_like(path, '^(%(packages)s)[^/]+[.]py$')"
      key: [id]"""
PACKAGES = (
    "collections concurrent email html http importlib json logging unittest urllib xml zipfile"
)
# Tests of the library's parts in Python: not those of processes, sockets, threads and files.
TESTS = """abstract_numbers argparse ast base64 bisect calendar cmd code codecs codeop collections
colorsys configparser copy csv dataclasses datetime decimal difflib dis enum fnmatch fractions
functools genericpath gettext graphlib heapq html htmlparser http_cookies inspect ipaddress keyword
linecache locale mimetypes netrc ntpath numeric_tower opcodes operator optparse pathlib plistlib
posixpath pprint pyclbr quopri random reprlib robotparser sched secrets shlex statistics string
strptime textwrap tokenize traceback types typing urlparse userdict userlist userstring uuid
weakset""".split()
EXECUTED = """\
  executed:
    op: execute
    from: { input: %(answers)s, oracle: oracles, modules: oracles.modules }
    with: { program: "{{ %(program)s }}", repeats: %(repeats)d%(python)s }"""
EXECUTED_OUTPUT = """\
  executed: { from: executed,          path: executed.jsonl }
  not_run:  { from: executed.rejects,  path: not_run.jsonl }
"""
ANSWERS = """\
  answers: { op: read, with: { path: answers.jsonl, key: [id] } }
"""
MINED = """\
  repos: { op: query, with: { repos: %(repos)s } }
  mined: { op: mine, from: repos, with: { since: "%(since)s", until: "%(until)s" } }
  methods:
    op: sql
    from: mined
    with:
      query: "SELECT * FROM input WHERE NOT regexp_like(path, '(^|/)tests?/|(^|/)test_')"
      key: [id]"""


def workflow(folder: Path, methods=LIBRARY, oracle="", more="", outputs="", name="oracles") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    values = {"methods": methods, "oracle": oracle, "more": more, "outputs": outputs}
    path.write_text(WORKFLOW % {**values, "columns": GRADES})
    return path


def rows(cache: Path, name: str) -> list:
    path = cache.parent / f"{cache.name}-out" / name
    with path.open(encoding="utf-8") as file:
        if name.endswith(".csv"):
            return list(csv.DictReader(file))
        return [json.loads(line) for line in file if line.strip()]


def counted(name: str, grades: list, rejects: list, wall: float) -> None:
    graded = [row for row in grades if row["cases_total"] >= 3]
    lines = [
        ["methods with an oracle", len(grades)],
        ["with a case of their own doctests", sum(row["doctests"] > 0 for row in grades)],
        ["with a recorded call", sum(row["calls"] > 0 for row in grades)],
        ["with a changed call", sum(row["mutated"] > 0 for row in grades)],
        ["with three cases or more", len(graded)],
        ["their median mutation score", median(graded, "mutation_score")],
        ["their median coverage", median(graded, "coverage")],
        ["seconds", f"{wall:.0f}"],
    ]
    reasons = Counter(row["rule"] for row in rejects)
    lines += [[f"without an oracle: {rule}", count] for rule, count in reasons.most_common()]
    table([name, ""], lines)


def median(grades: list, column: str) -> float:
    values = [row[column] for row in grades if row[column] is not None]
    return round(statistics.median(values), 3) if values else float("nan")


def busy():
    while True:
        pass


def interpreter(python: Path | None) -> str:
    """The arguments of `execute` that name an interpreter."""
    if python is None:
        return ""
    folders = {path.parent.parent for path in (python.absolute(), python.resolve())} - {
        Path("/usr")
    }
    command = json.dumps([str(python.absolute())])
    files = json.dumps([str(folder) for folder in sorted(folders)])
    return f", language: python, command: {command}, files: {files}"


def own_library(python: Path) -> tuple:
    """The step `methods` of an interpreter's own library, and the arguments of `oracle`."""
    printed = "import os; print(os.path.dirname(os.__file__))"
    found = subprocess.run([python, "-c", printed], capture_output=True, text=True, check=True)
    folder = Path(found.stdout.strip())
    scripts = [f"test/test_{name}{end}" for name in TESTS for end in (".py", "/test_*.py")]
    values = {"root": str(folder), "python": str(python.absolute()), "scripts": scripts}
    oracle = "".join(f", {name}: {json.dumps(value)}" for name, value in values.items())
    packages = f"({'|'.join(PACKAGES.split())})/([a-z]+/)*|"
    return OWN_LIBRARY % {"folder": json.dumps(str(folder)), "packages": packages}, oracle


def library(args, work, verdict):
    for python in [None, *args.python]:
        name = str(python or "python3")
        folder = work / f"library-{Path(name).parent.parent.name}-{Path(name).name}"
        methods, oracle = own_library(python) if python else (LIBRARY, "")
        cache = folder / "cache"
        made = run(args.galeras, workflow(folder, methods, oracle), cache)
        grades = rows(cache, "grades.jsonl")
        counted(name, grades, rows(cache, "rejects.jsonl"), made.wall)
        graded = [row for row in grades if row["cases_total"] >= 3]
        if python:
            verdict.check(len(graded) >= 800, f"{name}: {len(graded)} methods with three cases")
        score = median(graded, "mutation_score")
        verdict.check(score >= 0.6, f"{name}: the median mutation score is {score}")

        more = EXECUTED % {
            "answers": "grades",
            "program": "code",
            "repeats": 3,
            "python": interpreter(python),
        }
        again = workflow(folder, methods, oracle, more, outputs=EXECUTED_OUTPUT)
        load = [multiprocessing.Process(target=busy, daemon=True) for _ in range(CORES)]
        for process in load:
            process.start()
        checked = run(args.galeras, again, cache)
        for process in load:
            process.terminate()
        executed = rows(cache, "executed.jsonl")
        failed = [row for row in executed if not row["passed"]]
        for row in failed[:20]:
            print(f"  {row['path']} {row['qualified_name']}: {row['outcome']}: {row['message']}")
        print(
            f"{len(executed)} methods, three runs next to {CORES} busy processes: "
            f"{len(failed)} fail, {checked.wall:.0f} s"
        )
        verdict.check(
            len(executed) == len(grades), f"{name}: {len(grades) - len(executed)} did not run"
        )
        verdict.check(not failed, f"{name}: {len(failed)} methods fail their own cases")
        verdict.check("oracles" not in checked.not_hit, f"{name}: a second run makes oracles again")
        rerun = run(args.galeras, again, cache)
        print(f"rerun: {rerun.wall:.1f} s, computed: {rerun.not_hit or 'nothing'}")
        verdict.check(not rerun.not_hit, f"{name}: a rerun computes {rerun.not_hit}")


def small_library(args, folder: Path, count: int = 8) -> Path:
    """Modules of the library that have many oracles, as files; the folder."""
    cache = folder / "all"
    path = workflow(folder, name="all")
    run(args.galeras, path, cache)
    oracles = Counter(row["path"] for row in rows(cache, "grades.jsonl"))
    chosen = {path for path, _ in oracles.most_common(count)}
    for module in rows(cache, "modules.jsonl"):
        if module["path"] in chosen:
            file = folder / "lib" / module["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(module["content"], encoding="utf-8")
    return folder / "lib"


OWN = "  methods: { op: methods, with: { dir: lib } }"


def changed(args, work, verdict):
    folder = work / "changed"
    lib = small_library(args, folder)
    path, cache = workflow(folder, OWN, ", root: lib"), folder / "cache"
    run(args.galeras, path, cache)
    grades = rows(cache, "grades.jsonl")
    row = max(grades, key=lambda row: row["cases_total"])
    file = lib / row["path"]
    text = file.read_text(encoding="utf-8")
    lines = row["code"].split("\n")
    last = lines[-1]
    indent = last[: len(last) - len(last.lstrip())]
    file.write_text(
        text.replace(row["code"], f"{row['code']}\n{indent}# changed", 1), encoding="utf-8"
    )
    again = run(args.galeras, path, cache)
    step = again.steps["oracles"]
    computed, reused = step.get("computed_rows"), step.get("reused_rows")
    print(
        f"a comment in {row['path']} {row['qualified_name']}: {computed} computed, "
        f"{reused} reused, {again.wall:.1f} s"
    )
    # The examples of its module, and the oracles.
    verdict.check(computed == 2, f"one changed method computes {computed}")


def same(args, work, verdict):
    folder = work / "same"
    # A temporary folder is open to its owner alone.
    work.chmod(0o755)
    small_library(args, folder)
    path = workflow(folder, OWN, ", root: lib")
    places = [
        ("as it is", {}, []),
        ("hash seed", {"PYTHONHASHSEED": "7"}, []),
        ("time zone", {"TZ": "Asia/Kathmandu"}, []),
        ("locale", {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}, []),
        ("one core", {}, ["taskset", "-c", "0"]),
    ]
    if os.geteuid() == 0:
        places.append(("user 65534", {"HOME": "/"}, ["setpriv", "--reuid=65534", "--clear-groups"]))
    lines, first = [], None
    for at, (name, env, before) in enumerate([*places, ("another folder", {}, [])]):
        place = folder
        if name == "another folder":
            place = work / "same" / "a" / "longer way" / "to it"
            shutil.copytree(folder / "lib", place / "lib")
            shutil.copy(path, place)
        cache = place / f"cache-{at}"
        if name.startswith("user"):
            for created in (cache, place / f"cache-{at}-out"):
                created.mkdir()
                os.chown(created, 65534, -1)
        words = [*before, *command(args.galeras, place / path.name, cache)]
        done = subprocess.run(
            words, cwd=place, env={**environment(), **env}, capture_output=True, text=True
        )
        if done.returncode and name.startswith("user"):
            # It may not read the program.
            lines.append([name, "", "", f"not run: exit code {done.returncode}"])
            continue
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        steps = parse_events(done.stdout)[-1]["steps"]
        found = next(step for step in steps if step["step"] == "oracles")
        digests = {port["port"]: (port["digest"], port["rows"]) for port in found["ports"]}
        first = first or digests
        lines.append([name, digests["out"][1], digests["out"][0][:16], digests == first])
        verdict.check(digests == first, f"other digests: {name}")
    table(["differs by", "oracles", "digest", "same"], lines)


def repositories(args, work, verdict):
    for repo in filter(None, args.repos.split(",")):
        folder = work / f"repo-{Path(repo).name}"
        place = str(Path(repo).resolve()) if Path(repo).exists() else repo
        values = {"repos": json.dumps([place]), "since": args.since, "until": args.until}
        oracle = ', scripts: ["**/test_*.py", "**/*_test.py"]'
        if args.python:
            oracle += f", python: {json.dumps(str(args.python[0].absolute()))}"
        cache = folder / "cache"
        made = run(args.galeras, workflow(folder, MINED % values, oracle), cache)
        grades, rejects = rows(cache, "grades.jsonl"), rows(cache, "rejects.jsonl")
        counted(f"{repo}, {args.since} to {args.until}", grades, rejects, made.wall)
        for rule in sorted({row["rule"] for row in rejects}):
            reasons = Counter(row["reason"] for row in rejects if row["rule"] == rule)
            for reason, count in reasons.most_common(3):
                print(f"  {rule}: {count} of {reason[:110]}")
        verdict.check(bool(grades), f"{repo}: no method has an oracle")


SWAPS = {
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "//": "/",
    "%": "*",
    "<": "<=",
    "<=": "<",
    ">": ">=",
}
SWAPS |= {
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "and": "or",
    "or": "and",
    "True": "False",
    "False": "True",
}


def damaged_token(code: str, rng: random.Random) -> str | None:
    """The method with one changed token, which its syntax tree shows."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
        tree = ast.dump(ast.parse(code))
    except (SyntaxError, tokenize.TokenError):
        return None
    lines = code.splitlines(keepends=True)
    places = [t for t in tokens if t.string in SWAPS or t.type == tokenize.NUMBER]
    rng.shuffle(places)
    for token in places:
        new = SWAPS.get(token.string) or f"({token.string} + 1)"
        (line, start), (_, end) = token.start, token.end
        text = lines[line - 1]
        copy = [*lines[: line - 1], text[:start] + new + text[end:], *lines[line:]]
        try:
            if ast.dump(ast.parse("".join(copy))) != tree:
                return "".join(copy)
        except SyntaxError:
            continue
    return None


def damaged(args, work, verdict):
    folder, rng = work / "damaged", random.Random(40)
    folder.mkdir()
    cache = folder / "cache"
    done = run(args.galeras, ROOT / "workflows" / "executed.yaml", cache, "--set", f"n={args.n}")
    print(f"executed.yaml, {args.n} methods: {done.wall:.0f} s")
    board = rows(cache, "executed/leaderboard.csv")
    columns = [
        "task",
        "model",
        "treatment",
        "methods",
        "echo",
        "mean",
        "ci_low",
        "ci_high",
        "damaged",
    ]
    columns += ["reference", "cases", "coverage", "mutation_score"]
    passing = [line for line in board if line["score"] == "pass@1"]
    table(columns, [[line[column] for column in columns] for line in passing])
    for line in passing:
        ends = float(line["echo"]), float(line["reference"])
        verdict.check(ends == (0.0, 1.0), f"{line['task']}: the ends are {ends}")
    columns = ["task", "operator", "mutants", "failed", "killed", "mutation_score", "codebleu"]
    lines = rows(cache, "executed/damaged.csv")
    table(columns, [[line[column] for column in columns] for line in lines])
    for line in lines:
        verdict.check(line["failed"] == line["killed"], f"{line['operator']}: another rate")
    columns = ["task", "model", "variable", "coefficient", "ci_low", "ci_high", "n", "status"]
    lines = rows(cache, "executed/correlations.csv")
    table(columns, [[line[column] for column in columns] for line in lines])
    if args.figure:
        shutil.copy(folder / "cache-out" / "executed" / "correlations.svg", args.figure)

    # One changed token of each method, made without the program.
    tokens = work / "tokens"
    first = workflow(tokens)
    run(args.galeras, first, tokens / "cache")
    graded = [row for row in rows(tokens / "cache", "grades.jsonl") if row["cases_total"] >= 3]
    answers = [{"id": row["id"], "code": damaged_token(row["code"], rng)} for row in graded]
    answers = [answer for answer in answers if answer["code"]]
    with (tokens / "answers.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(answer) + "\n" for answer in answers)
    more = ANSWERS + EXECUTED % {
        "answers": "answers",
        "program": "code",
        "repeats": 1,
        "python": "",
    }
    run(args.galeras, workflow(tokens, more=more, outputs=EXECUTED_OUTPUT), tokens / "cache")
    executed = rows(tokens / "cache", "executed.jsonl")
    failed = sum(not row["passed"] for row in executed) / len(executed)
    scores = [row["mutation_score"] for row in executed if row["mutation_score"] is not None]
    mean = statistics.fmean(scores)
    print(
        f"one changed token of {len(executed)} methods: {failed:.3f} fail, "
        f"mutation score {mean:.3f}"
    )
    verdict.check(abs(failed - mean) <= 0.1, f"changed tokens fail at {failed:.3f}, not {mean:.3f}")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--only", default="", help="only parts whose name has this text")
    parser.add_argument("--python", type=Path, action="append", default=[], help="an interpreter")
    parser.add_argument("--repos", default="", help="clones of repositories, with commas")
    parser.add_argument("--since", default="2024-01-01", help="first day of commits")
    parser.add_argument("--until", default="2025-01-01", help="first day that does not count")
    parser.add_argument("--n", type=int, default=200, help="methods for executed.yaml")
    parser.add_argument("--figure", type=Path, help="where the figure of correlations goes")
    args = parser.parse_args()
    work, verdict = work_folder(args), Verdict()
    for part in (library, changed, same, repositories, damaged):
        if args.only in part.__name__:
            print(f"\n{part.__name__}", flush=True)
            part(args, work, verdict)
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
