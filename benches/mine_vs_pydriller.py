"""Must-show: mining a history is as right as PyDriller, far faster, and near `git log -p`.

What it shows: the changed Python methods of a window of a repository's history, mined by
PyDriller (pinned; with its complexity, nloc, token count and the method's text) and by
`mine`. `mine` must be at least 40 times as fast as PyDriller, take at most 6 times as long as
`git log -p` over the same window, find at least 99 % of PyDriller's (commit, path, method
name) triples whose method the commit keeps, and `ast` must give lizard's complexity, nloc and
token count on at least 99.5 % of the methods that both cut alike. Every disagreement is put
into a class by evidence: git's own diffs, lizard run again, the syntax tree.

How to run it: `python3 benches/mine_vs_pydriller.py --repo PATH --since 2020-01-01
--until 2021-01-01 [--branch NAME] [--repeat 3] [--pydriller-cache FILE] [--venv FOLDER]
[--jobs N] [--no-requirements] [--galeras PATH]`. The repository may be bare; it is only read
(PyDriller, which writes to a repository's configuration, gets a temporary clone that borrows
the objects). The window is since <= committer time < until, in UTC. It needs the package
registry once, for the virtual environment.

What it prints: the times, the recall, all disagreements by class with examples, the shares
of equal features, the ratios. Exit code 1 if a requirement does not hold. The time of
PyDriller is that of one run, of its loop alone (without the start of Python and the imports),
with nothing in the loop but what gives the result. With `--pydriller-cache` its result and
time are stored and reused; the output says so, and judges such a time by the smaller of wall
and processor seconds, as the machine may have been busy.
"""

import argparse
import bisect
import datetime
import functools
import json
import os
import pickle
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import Verdict, arguments, environment, in_venv, pinned, run, table, work_folder  # noqa: E402

PINS = {
    "pydriller": "2.12",
    "lizard": "1.24.3",
    "GitPython": "3.2.1",
    "pyarrow": "26.0.1",
    "tree-sitter": "0.26.1",
    "tree-sitter-python": "0.25.0",
}
COMPARED = ["pydriller", "lizard", "GitPython"]
FASTER_THAN_PYDRILLER, SLOWER_THAN_GIT, RECALL, EQUAL = 40, 6, 0.99, 0.995
FEATURES = ["complexity", "nloc", "token_counts"]
FORMAT = 1


# ---------------------------------------------------------------- processes


def git_environment(work: Path) -> dict:
    """No configuration but what this script needs: any owner of a repository will do."""
    config = work / "gitconfig"
    if not config.exists():
        config.write_text("[safe]\n\tdirectory = *\n")
    return {**environment(), "GIT_CONFIG_GLOBAL": str(config), "GIT_CONFIG_NOSYSTEM": "1"}


def processor_seconds() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def ends(args: argparse.Namespace) -> tuple:
    """The first and the last second of the window."""
    zone = datetime.UTC
    first, after = (
        datetime.datetime.combine(day, datetime.time(), zone) for day in (args.since, args.until)
    )
    return first, after - datetime.timedelta(seconds=1)


# ---------------------------------------------------------------- PyDriller


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
            os.path.abspath(__file__),
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


# ---------------------------------------------------------------- git log and Galeras


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
    return zip(*(columns[name].to_pylist() for name in names), strict=False)


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


# ---------------------------------------------------------------- evidence


@dataclass(frozen=True)
class Change:
    """A changed file of a commit, as git pairs it."""

    status: str
    old_path: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class Definition:
    """A `def` in the syntax tree of a file."""

    qualified: str
    name: str
    start: int
    end: int
    body: int  # line of the first statement
    signature_end: int  # line of the colon
    error: bool = False  # whether its tree has an error
    at: int = 0  # among those of the same qualified name
    of: int = 1  # how many these are

    @property
    def one_line(self) -> bool:
        """Whether the body begins on the line of the signature."""
        return self.body == self.signature_end


class Source:
    """A version of a file: text, syntax tree, lizard's methods."""

    def __init__(self, data: bytes) -> None:
        import tree_sitter
        import tree_sitter_python

        self.data = data
        try:
            data.decode("utf-8")
            self.utf8 = True
        except UnicodeDecodeError:
            self.utf8 = False
        self.text = data.decode("utf-8", "ignore")
        self.lines = self.text.split("\n")
        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))
        self.tree = parser.parse(data)
        self.error = self.tree.root_node.has_error
        self.definitions, self.strings = [], []
        todo = [(self.tree.root_node, ())]
        while todo:
            node, names = todo.pop()
            if node.type in ("function_definition", "class_definition"):
                name = node.child_by_field_name("name")
                names = (*names, name.text.decode("utf-8", "ignore") if name else "")
                if node.type == "function_definition":
                    body = node.child_by_field_name("body")
                    colon = [c for c in node.children if c.type == ":"]
                    self.definitions.append(
                        Definition(
                            ".".join(names),
                            names[-1],
                            node.start_point[0] + 1,
                            last_line(node),
                            (body or node).start_point[0] + 1,
                            (colon[-1] if colon else node).start_point[0] + 1,
                            node.has_error,
                        )
                    )
            elif node.type == "string":
                self.strings.append((node.start_point[0] + 1, node.end_point[0] + 1))
            todo.extend((child, names) for child in node.children)
        self.definitions.sort(key=lambda d: d.start)
        of, at = Counter(d.qualified for d in self.definitions), Counter()
        for place, d in enumerate(self.definitions):
            self.definitions[place] = replace(d, at=at[d.qualified], of=of[d.qualified])
            at[d.qualified] += 1
        self.at_line = defaultdict(list)
        for definition in self.definitions:
            self.at_line[definition.start].append(definition)

    def at(self, line: int, name: str) -> Definition | None:
        return next((d for d in self.at_line[line] if d.name == name), None)

    def in_string(self, line: int) -> bool:
        return any(start < line <= end for start, end in self.strings)

    @functools.cached_property
    def lizard(self) -> list:
        return lizard_methods(self.text)


def last_line(node) -> int:
    """A node that ends at the begin of a line ends with the line before."""
    row, column = node.end_point
    return row + (column > 0) if row > node.start_point[0] else row + 1


def lizard_methods(text: str) -> list:
    import lizard

    return lizard.analyze_file.analyze_source_code("file.py", text).function_list


ALGORITHMS = {
    "histogram": ["--diff-algorithm=histogram"],
    "histogram, no indent heuristic": ["--diff-algorithm=histogram", "--no-indent-heuristic"],
    "Myers, no indent heuristic": ["--no-indent-heuristic"],
    "minimal": ["--diff-algorithm=minimal"],
    "patience": ["--diff-algorithm=patience"],
    # Without context lines, git cuts a common end off before it searches.
    "Myers, common end cut off": ["-U0"],
}
HUNK = re.compile(rb"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


class Lines:
    """A set of line numbers, by ranges."""

    def __init__(self, ranges: list) -> None:
        self.ranges = sorted(ranges)

    def meets(self, start: int, end: int) -> bool:
        at = bisect.bisect_right(self.ranges, (end, float("inf")))
        return at > 0 and self.ranges[at - 1][1] >= start


class History:
    """What git says of commits, files and lines."""

    def __init__(self, repo: Path, env: dict) -> None:
        self.repo, self.env = repo, env
        self.blobs = subprocess.Popen(
            self.git("cat-file", "--batch"), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def git(self, *arguments: str) -> list:
        return ["git", "-C", str(self.repo), *arguments]

    def out(self, *arguments: str) -> bytes:
        return subprocess.run(
            self.git(*arguments),
            env=self.env,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ).stdout

    def blob(self, name: str) -> bytes:
        self.blobs.stdin.write(name.encode() + b"\n")
        self.blobs.stdin.flush()
        head = self.blobs.stdout.readline().split()
        if len(head) != 3:
            return b""
        return self.blobs.stdout.read(int(head[2]) + 1)[:-1]

    @functools.lru_cache(256)
    def source(self, name: str | None) -> Source:
        return Source(self.blob(name) if name else b"")

    @functools.lru_cache(64)
    def changes(self, commit: str, *options: str) -> dict:
        """New path -> change, with git's pairing of renames (PyDriller's) unless told."""
        fields = (
            self.out(
                "diff-tree",
                "-r",
                "--root",
                "--raw",
                "-z",
                "--no-commit-id",
                *(options or ["-M"]),
                commit,
            )
            .decode("utf-8", "surrogateescape")
            .split("\0")
        )
        changes, at = {}, 0
        while at < len(fields) - 1:
            _, _, old, new, status = fields[at].split(" ")
            path = fields[at + 1]
            at += 2
            old_path = path
            if status[0] in "RC":
                path = fields[at]
                at += 1
            if status[0] != "D":
                old = None if set(old) == {"0"} else old
                changes[path] = Change(status[0], old_path, old, new)
        return changes

    @functools.lru_cache(256)
    def diff(self, old: str | None, new: str, *options: str) -> tuple:
        """Deleted lines of the old version, added lines of the new one."""
        if old is None:
            return Lines([]), Lines([(1, len(self.source(new).lines))])
        if old == new:
            return Lines([]), Lines([])
        # With its context, as PyDriller asks: without it git may place a hunk elsewhere.
        text = self.out("diff", "--no-color", "--no-ext-diff", *options, old, new)
        deleted, added, at, new_at = [], [], None, None
        for line in text.split(b"\n"):
            if found := HUNK.match(line):
                at, new_at = int(found[1]), int(found[2])
            elif at is None:
                continue
            elif line.startswith(b"-"):
                deleted.append((at, at))
                at += 1
            elif line.startswith(b"+"):
                added.append((new_at, new_at))
                new_at += 1
            elif line.startswith(b" "):
                at, new_at = at + 1, new_at + 1
        return Lines(deleted), Lines(added)

    def touched(self, change: Change, method: Definition, *options: str) -> bool:
        """Whether a method is changed by its ranges in the syntax trees of both versions."""
        deleted, added = self.diff(change.old, change.new, *options)
        if added.meets(method.start, method.end):
            return True
        return any(
            deleted.meets(before.start, before.end)
            for before in self.source(change.old).definitions
            if before.qualified == method.qualified
            and (before.at == method.at or before.of != method.of)
        )

    def other_diff(self, change: Change, method: Definition, wanted: bool) -> str | None:
        """The algorithm by which a method is (or is not) changed, other than by git's own."""
        for name, options in ALGORITHMS.items():
            if self.touched(change, method, *options) == wanted:
                return name
        return None

    def other_pairing(self, commit: str, path: str, method: Definition, wanted: bool) -> bool:
        """Whether another pairing of renamed files makes a method changed (or not)."""
        for options in (["--no-renames"], ["-M30%"], ["-M70%"], ["-C", "--find-copies-harder"]):
            change = self.changes(commit, *options).get(path)
            if change and self.touched(change, method) == wanted:
                return True
        return False


JOINS = "lizard joins a one-line def with what follows"
COLLAPSED = "same-named methods of a file collapsed by PyDriller"
NOT_UTF8 = "file not UTF-8"
SYNTAX = "file with a syntax error"
NAMESAKES = "namesakes in one scope (overload, setter): which is the old version of which"
DIFF = "diff placed the hunk differently"
RENAME = "rename pairing differs"
OTHER = "other"
GONE = "deleted in its scope; another method of the file has its name and is not changed"


def blank(lines: list) -> bool:
    """Whether lines have no code."""
    return all(not line.strip() or line.lstrip().startswith("#") for line in lines)


def indentation(line: str) -> int:
    return len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip())


def range_class(source: Source, method: Definition, start: int, end: int) -> str | None:
    """Why lizard's range of a method is not that of the syntax tree; null if it is."""
    lines = source.lines
    if start != method.start:
        return "lizard's range starts elsewhere"
    if end == method.end:
        return None
    if end > method.end:
        behind = lines[method.end : end]
        if method.one_line:
            return JOINS
        if blank(behind):
            return "lizard's range ends later (trailing comments or blank lines)"
        return "lizard's range ends later (code behind the method)"
    rest = lines[end : method.end]
    if blank(rest):
        return "lizard's range ends earlier (trailing comments are ours)"
    if end < method.signature_end or end < method.body:
        return "lizard's range ends in the signature"
    following = next(line for line in rest if line.strip() and not line.lstrip().startswith("#"))
    if indentation(following) < indentation(lines[method.body - 1]):
        return "lizard's range ends at a continuation line of less indentation"
    nested = [
        inner
        for inner in source.definitions
        if method.start < inner.start and inner.end <= method.end and inner.start <= end + 1
    ]
    if any(inner.one_line for inner in nested):
        return JOINS + " (nested)"
    if nested:
        return "lizard ends a method at a nested one"
    return "lizard's range ends earlier"


class Comparison:
    """Both results, and why they differ."""

    def __init__(self, mined: dict, rows: list, history: History) -> None:
        self.history, self.rows = history, rows
        self.commits = set(mined["commits"])
        methods = [Method(*values) for values in mined["methods"]]
        self.deleted = sum(m.how == "deleted" for m in methods)
        self.triples = defaultdict(list)
        for method in methods:
            if method.how != "deleted":
                self.triples[method.commit, method.path, method.name].append(method)
        self.ours = defaultdict(list)
        for row in rows:
            self.ours[row.commit, row.path].append(row)
        self.theirs = defaultdict(list)
        for (commit, path, _), found in self.triples.items():
            self.theirs[commit, path].extend(found)

    def classify(self, function, item) -> str:
        """A class, or what went wrong while looking for it."""
        try:
            return function(item)
        except Exception as error:  # noqa: BLE001
            return f"{OTHER}: no evidence, {error!r}"

    # -- triples

    def recall(self) -> tuple:
        """How each triple is found, and the classes of those that are not at their line."""
        how, classes = Counter(), defaultdict(list)
        for (commit, path, name), methods in self.triples.items():
            rows = self.ours.get((commit, path), [])
            named = [row for row in rows if maps(name, row.qualified)]
            lines = {line for method in methods for line in method.lines}
            last = name.rpartition(".")[2]
            if any(row.start in lines for row in named):
                how["line"] += 1
            elif any(row.start in lines and row.name == last for row in rows):
                how["other name"] += 1
                classes["found: lizard nests its name by indentation alone"].append(
                    (commit, path, name)
                )
            else:
                methods.sort(key=lambda method: method.how != "new")
                kind = self.classify(self.why_missing, methods[0])
                gone = kind == GONE and not named
                how["gone" if gone else "name only" if named else "missing"] += 1
                if named:
                    kind = f"{kind} (a method of that name elsewhere in the file is found)"
                classes[kind].append((commit, path, name))
        return how, classes

    def why_missing(self, method: Method) -> str:
        history, path = self.history, method.path
        change = history.changes(method.commit).get(path)
        if change is None:
            return f"{OTHER}: git does not list the file"
        source, before = history.source(change.new), history.source(change.old)
        if not source.utf8 or not before.utf8:
            return NOT_UTF8
        last = method.name.rpartition(".")[2]
        definitions = [d for line in method.lines if (d := source.at(line, last))]
        changed = [d for d in definitions if history.touched(change, d)]
        definition = next(iter(changed or definitions), None)
        if definition is None:
            if any(source.in_string(line) for line in method.lines):
                return "lizard sees a def inside of a string"
            return SYNTAX if source.error else f"{OTHER}: no such def in the syntax tree"
        if not changed:
            kind = range_class(source, definition, method.start, method.end)
            deleted, added = history.diff(change.old, change.new)
            if kind and added.meets(method.start, method.end):
                return kind
            olds = (
                [method.old]
                if method.old
                else [(m.start_line, m.end_line) for m in before.lizard if m.name == method.name]
            )
            for start, end in olds:
                if not deleted.meets(start, end):
                    continue
                old = before.at(start, last)
                if old is None:
                    where = "in a string" if before.in_string(start) else "not in the tree"
                    return f"old range only: lizard's old def is {where}"
                kind = range_class(before, old, start, end)
                if kind and not deleted.meets(old.start, old.end):
                    return f"old range only: {kind}"
                if all(old.qualified != d.qualified for d in source.definitions):
                    return GONE
                if old.qualified != definition.qualified:
                    return "old range only: of a same-named method in another scope, which stays"
                if (old.at, old.of) != (definition.at, definition.of):
                    return "old range only: of a namesake in the same scope (overload, setter)"
            return SYNTAX if source.error or before.error else f"{OTHER}: not changed for git"
        other = history.other_diff(change, definition, False)
        if other:
            return f"{DIFF} (not changed by {other})"
        if history.other_pairing(method.commit, path, definition, False):
            return RENAME
        if source.error or before.error:
            return SYNTAX
        if definition.of > 1:
            return NAMESAKES
        if not self.ours.get((method.commit, path)):
            return f"{OTHER}: we have nothing of the file"
        return OTHER

    # -- rows that only we have

    def extras(self) -> tuple:
        """Our rows without a method of PyDriller's at their line, by class; how many of them
        give a triple that PyDriller has not."""
        classes, new_names = defaultdict(list), 0
        for (commit, path), rows in self.ours.items():
            theirs = self.theirs.get((commit, path), [])
            known = {(line, m.name.rpartition(".")[2]) for m in theirs for line in m.lines}
            for row in rows:
                if (row.start, row.name) in known:
                    continue
                new_names += not any(maps(m.name, row.qualified) for m in theirs)
                classes[self.classify(self.why_extra, row)].append((commit, path, row.qualified))
        return classes, new_names

    def why_extra(self, row: Row) -> str:
        history = self.history
        if row.commit not in self.commits:
            return f"{OTHER}: PyDriller has not mined the commit"
        change = history.changes(row.commit).get(row.path)
        if change is None:
            return f"{OTHER}: git does not list the file"
        source, before = history.source(change.new), history.source(change.old)
        definition = source.at(row.start, row.name)
        seen = [
            m
            for m in source.lizard
            if m.start_line == row.start and m.name.rpartition(".")[2] == row.name
        ]
        if definition is None:
            if not source.utf8:
                return NOT_UTF8
            return SYNTAX if source.error else f"{OTHER}: no such def in the syntax tree"
        if not seen:
            return self.why_unseen(source, definition)
        method = seen[0]
        if self.by_lizard(change, method):
            same = any(
                m.name == method.name and list(m.parameters) == method.parameters
                for m in self.theirs.get((row.commit, row.path), [])
            )
            if same:
                return COLLAPSED
            return NOT_UTF8 if not source.utf8 else f"{OTHER}: changed by lizard's range as well"
        if history.touched(change, definition):
            kind = range_class(source, definition, method.start_line, method.end_line)
            deleted, added = history.diff(change.old, change.new)
            if kind and added.meets(definition.start, definition.end):
                return kind
            for old in before.definitions:
                if old.qualified == definition.qualified and deleted.meets(old.start, old.end):
                    of_old = [m for m in before.lizard if m.start_line == old.start]
                    if not of_old:
                        return f"old range only: {self.why_unseen(before, old)}"
                    kind = range_class(before, old, old.start, of_old[0].end_line)
                    if kind:
                        return f"old range only: {kind}"
                    if of_old[0].name != method.name:
                        return "old range only: lizard names the two versions differently"
            if definition.of > 1:
                return NAMESAKES
            return SYNTAX if source.error or before.error else OTHER
        other = history.other_diff(change, definition, True)
        if other:
            return f"{DIFF} (changed by {other})"
        if history.other_pairing(row.commit, row.path, definition, True):
            return RENAME
        if source.error or before.error:
            return SYNTAX
        return NOT_UTF8 if not source.utf8 or not before.utf8 else OTHER

    def by_lizard(self, change: Change, method) -> bool:
        """Whether a method is changed by lizard's ranges, as PyDriller reckons it."""
        deleted, added = self.history.diff(change.old, change.new)
        if added.meets(method.start_line, method.end_line):
            return True
        return any(
            deleted.meets(old.start_line, old.end_line)
            for old in self.history.source(change.old).lizard
            if (old.name, old.parameters) == (method.name, method.parameters)
        )

    @staticmethod
    def why_unseen(source: Source, method: Definition) -> str:
        """Why lizard does not give a method."""
        marks = {
            "GENERATED CODE": "GENERATED CODE ends lizard's reading",
            "lizard forgive": "#lizard forgives",
        }
        for mark, kind in marks.items():
            if mark in source.text:
                without = lizard_methods(source.text.replace(mark, mark.replace(" ", "_")))
                if any(m.start_line == method.start for m in without):
                    return kind
        if method.one_line:
            return JOINS
        if any(d.one_line for d in source.definitions if method.start < d.start <= method.end):
            return JOINS + " (nested)"
        if source.error:
            return SYNTAX
        if not source.utf8:
            return NOT_UTF8
        # A def without a deeper line behind it is lost too: is it so when cut out alone?
        text = "\n".join(source.lines[method.start - 1 : method.end])
        alone = [m for m in lizard_methods(text + "\n") if m.start_line == 1]
        if not alone:
            return "lizard loses the def even when it stands alone"
        return "lizard loses the def in its surroundings"

    # -- texts and features

    def pairs(self) -> list:
        """Each method of PyDriller with our row at its line."""
        pairs, used = [], set()
        for (commit, path), methods in self.theirs.items():
            by_place = {(row.start, row.name): row for row in self.ours.get((commit, path), [])}
            for method in methods:
                if len(method.lines) > 1:
                    continue
                place = (method.start, method.name.rpartition(".")[2])
                if place in by_place and (commit, path, place) not in used:
                    used.add((commit, path, place))
                    pairs.append((method, by_place[place]))
        return pairs

    def why_text(self, pair: tuple) -> str:
        method, row = pair
        change = self.history.changes(row.commit)[row.path]
        source = self.history.source(change.new)
        if not source.utf8:
            return NOT_UTF8
        definition = source.at(row.start, row.name)
        if definition is None:
            return SYNTAX if source.error else f"{OTHER}: no such def in the syntax tree"
        kind = range_class(source, definition, method.start, method.end)
        if kind:
            return SYNTAX if definition.error else kind
        if row.end != definition.end:
            return f"{OTHER}: our range is not that of the syntax tree"
        ours, theirs = row.code, cut(method.text)
        if theirs.startswith(ours):
            rest = theirs[len(ours) :].strip()
            if rest.startswith("#"):
                return "same lines: a comment behind the last token is not ours"
            if rest.startswith(";"):
                return "same lines: a semicolon behind the last token is not ours"
        if theirs.endswith(ours):
            return "same lines: code before the def on its line"
        if ours.replace("\r", "") == theirs.replace("\r", ""):
            return "same lines: carriage returns"
        if source.error:
            return SYNTAX
        return f"{OTHER}: same lines, other text"


def maps(name: str, qualified: str) -> bool:
    """Whether lizard's name, which knows no classes, may be that of our qualified name."""
    parts, ours = name.split("."), qualified.split(".")
    if parts[-1] != ours[-1]:
        return False
    rest = iter(ours[:-1])
    return all(part in rest for part in parts[:-1])


def cut(text: str) -> str:
    """Lines of a method without the first one's indentation and what trails."""
    return text.lstrip(" \t\f").rstrip()


CONSTRUCTS = [
    ("an f-string", r"(?i)\b(?:f|rf|fr)[\"']"),
    ("a nested def or class", r"(?s)\A.+?\n\s+(?:async\s+def|def|class)\s"),
    ("match or case", r"(?m)^\s+(?:match|case)\b"),
    ("a triple-quoted string", r"\"\"\"|'''"),
    ("a backslash at a line's end", r"\\\n"),
    ("a one-line body", r"\A[^\n]*\Z"),
    ("a lambda", r"\blambda\b"),
    ("a comment", r"#"),
]


def why_feature(pair: tuple, name: str) -> str:
    """Whose number is another one, and with what in the method."""
    method, row = pair
    alone = [m for m in lizard_methods(row.code + "\n") if m.start_line == 1]
    if alone:
        m = alone[0]
        value = {
            "complexity": m.cyclomatic_complexity,
            "nloc": m.nloc,
            "token_counts": m.token_count,
        }[name]
        if value == getattr(row, name):
            return "lizard on the method alone gives our number, in its file another one"
        where = "lizard alone as in its file" if value == getattr(method, name) else "three numbers"
    else:
        where = "lizard gives nothing for the method alone"
    found = (what for what, pattern in CONSTRUCTS if re.search(pattern, row.code))
    has = next(found, "nothing odd")
    return f"{where}; the method has {has}"


# ---------------------------------------------------------------- report


def show(title: str, classes: dict, whole: int, examples: int = 3) -> None:
    total = sum(map(len, classes.values()))
    print(f"\n{title}: {total} of {whole}")
    for kind, found in sorted(classes.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"  {len(found):6}  {kind}")
        every = len(found) if kind.startswith(OTHER) else examples
        for commit, path, name, *more in found[: min(every, 200)]:
            print(f"            {commit[:12]} {path} {name} {' '.join(map(str, more))}".rstrip())


def share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def compare(mined: dict, rows: list, history: History) -> dict:
    """Prints all disagreements; gives the recall and the shares of equal features."""
    comparison = Comparison(mined, rows, history)
    triples = len(comparison.triples)
    print(
        f"\nPyDriller: {len(mined['commits'])} commits, {len(mined['methods'])} methods; "
        f"{comparison.deleted} of them deleted (no data points), {triples} triples of commit, "
        f"path and name; {len(mined['errors'])} files ended with an exception"
    )
    for error in mined["errors"][:3]:
        print(f"  {error}")
    print(f"ours: {len({row.commit for row in rows})} commits, {len(rows)} methods")

    how, classes = comparison.recall()
    # PyDriller tells methods by name alone: what it lists for a method that is deleted while
    # a namesake stays is no method of the new version, so nothing to be found.
    all_triples, triples = triples, triples - how["gone"]
    found = triples - how["missing"]
    at_line = how["line"] + how["other name"]
    print(
        f"\nfound by us: {found} of {triples} triples, {share(found, triples):.3%}; the very "
        f"def: {at_line}, {share(at_line, triples):.3%} ({how['line']} under lizard's name, "
        f"{how['other name']} where lizard nests it otherwise); missing {how['missing']}; not "
        f"counted: {how['gone']} that are deleted while a namesake stays (with them "
        f"{share(found, all_triples):.3%})"
    )
    show(
        "triples of PyDriller's that are missing, or not at their line or name",
        classes,
        all_triples,
    )

    extras, new_names = comparison.extras()
    show("methods that only we have", extras, len(rows))
    print(f"  of them with a triple that PyDriller has not: {new_names}")

    pairs = comparison.pairs()
    equal, same_lines, texts, without = [], [], defaultdict(list), 0
    for method, row in pairs:
        without += row.complexity is None
        if cut(method.text) == row.code.rstrip():
            equal.append((method, row))
        else:
            kind = comparison.classify(comparison.why_text, (method, row))
            texts[kind].append((row.commit, row.path, row.qualified))
        if method.end == row.end:
            same_lines.append((method, row))
    show("methods of both with another text", texts, len(pairs))
    if without:
        print(f"  {without} methods of both have no features of ours: counted as unequal")

    shares = {}
    for name in FEATURES:
        kinds = defaultdict(list)
        for pair in equal:
            method, row = pair
            if getattr(method, name) != getattr(row, name):
                kinds[comparison.classify(lambda p: why_feature(p, name), pair)].append(
                    (
                        row.commit,
                        row.path,
                        row.qualified,
                        f"lizard {getattr(method, name)}, ours {getattr(row, name)}",
                    )
                )
        shares[name] = share(len(equal) - sum(map(len, kinds.values())), len(equal))
        show(f"{name} unequal, of the methods with an equal text", kinds, len(equal))
        lines = sum(getattr(m, name) == getattr(r, name) for m, r in same_lines)
        print(
            f"  equal: {shares[name]:.3%}; of all {len(same_lines)} with the same lines: "
            f"{share(lines, len(same_lines)):.3%}"
        )
    unclassified = sum(
        len(found)
        for group in (classes, extras, texts)
        for kind, found in group.items()
        if kind.startswith(OTHER)
    )
    disagreements = sum(
        len(found) for group in (classes, extras, texts) for found in group.values()
    )
    return {
        "recall": share(found, triples),
        "with gone": share(found, all_triples),
        "the very def": share(at_line, triples),
        "shares": shares,
        "other": unclassified,
        "disagreements": disagreements,
        "triples": triples,
        "equal texts": len(equal),
        "pairs": len(pairs),
    }


def main() -> int:
    parser = arguments(__doc__)
    day = datetime.date.fromisoformat
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--repo", type=Path, required=True, help="a local repository, bare or not")
    parser.add_argument("--since", type=day, required=True, help="first day (UTC)")
    parser.add_argument("--until", type=day, required=True, help="day behind the last one (UTC)")
    parser.add_argument("--branch", help="instead of HEAD")
    parser.add_argument("--repeat", type=int, default=3, help="runs of git log and of ours")
    parser.add_argument("--jobs", type=int, help="of galeras run")
    parser.add_argument("--venv", type=Path, default=base / "galeras" / "venv-mine")
    parser.add_argument("--pydriller-cache", type=Path, help="store and reuse its result and time")
    parser.add_argument("--only-pydriller", action="store_true", help="end behind its run")
    parser.add_argument("--ours", type=Path, help="compare this methods.parquet; time nothing")
    parser.add_argument("--no-requirements", action="store_true", help="only report")
    parser.add_argument("--pydriller-worker", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.repo = args.repo.resolve()
    if args.pydriller_worker:
        result = mine_by_pydriller(str(args.repo), *ends(args), args.branch)
        args.pydriller_worker.write_bytes(pickle.dumps(result))
        return 0
    in_venv(*pinned(PINS), folder=args.venv)
    work, verdict = work_folder(args), Verdict()
    env = git_environment(work)
    head = subprocess.run(
        ["git", "-C", str(args.repo), "rev-parse", args.branch or "HEAD"],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    print(
        f"{args.repo} at {head[:12]}, {args.since} <= committer time < {args.until} UTC; "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    git_log(args, env)  # so that nobody reads the objects from the disk first
    mined = pydriller(args, work, head)
    if args.only_pydriller:
        print(
            f"PyDriller: {mined['seconds']:.1f} s, {len(mined['commits'])} commits, "
            f"{len(mined['methods'])} methods"
        )
        return 0
    print(
        f"commits: {len(mined['commits'])} of PyDriller's, {logged(args, env)} of git log's "
        "(which simplifies the history of a path)"
    )

    git, ours, lines = [], [], []
    if args.ours:
        methods = features = args.ours
    else:
        for at in range(args.repeat):
            load = os.getloadavg()[0]
            git.append(git_log(args, env))
            wall, used, methods, _ = mine_by_galeras(args, work, False)
            ours.append((wall, used))
            lines.append(
                [
                    at + 1,
                    f"{load:.1f}",
                    f"{git[-1][0]:.2f}",
                    f"{git[-1][1]:.2f}",
                    f"{wall:.2f}",
                    f"{used:.2f}",
                    f"{wall / git[-1][0]:.2f}",
                ]
            )
        table(["run", "load", "git log s", "cpu s", "ours s", "cpu s", "ratio"], lines)
        methods = Path(shutil.copy(methods, work / "only_methods.parquet"))
        _, _, features, steps = mine_by_galeras(args, work, True)
        for step, summary in steps.items():
            ports = ", ".join(f"{port['port']} {port['rows']}" for port in summary["ports"])
            print(f"step {step}: rows {ports}")
    history = History(args.repo, env)
    found = compare(mined, read_rows(methods, features), history)

    print(f"\ndisagreements: {found['disagreements']}, {found['other']} of them without a class")
    cached = " (CACHED)" if mined["cached"] else ""
    print(f"PyDriller{cached}: {mined['seconds']:.1f} s, processor {mined['processor']:.1f} s")
    if ours:
        walls, logs = [wall for wall, _ in ours], [wall for wall, _ in git]
        mine, log = statistics.median(walls), statistics.median(logs)
        print(f"git log -p: min {min(logs):.2f} s, median {log:.2f} s")
        print(
            f"ours: min {min(walls):.2f} s, median {mine:.2f} s, processor median "
            f"{statistics.median(used for _, used in ours):.2f} s"
        )
        # A stored time may be that of a busy machine: then the smaller one is judged.
        seconds = mined["seconds"]
        if mined["cached"]:
            seconds = min(seconds, mined["processor"])
            print(
                f"judged on {seconds:.1f} s of PyDriller's, the smaller of its CACHED wall and "
                "processor seconds: mine without a cache for the real ratio"
            )
        faster, slower = seconds / mine, mine / log
        print(
            f"PyDriller / ours: {faster:.1f} (at least {FASTER_THAN_PYDRILLER}); "
            f"ours / git log: {slower:.2f} (at most {SLOWER_THAN_GIT})"
        )
        if not args.no_requirements:
            verdict.check(faster >= FASTER_THAN_PYDRILLER, f"{faster:.1f} times PyDriller's speed")
            verdict.check(slower <= SLOWER_THAN_GIT, f"{slower:.2f} times the time of git log")
    print(
        f"recall: {found['recall']:.3%} of {found['triples']} triples (the very def: "
        f"{found['the very def']:.3%}; counting methods deleted while a namesake stays: "
        f"{found['with gone']:.3%}); at least {RECALL:.0%}"
    )
    print(f"equal texts: {found['equal texts']} of {found['pairs']} methods of both")
    print(
        "equal features: "
        + ", ".join(f"{k} {v:.3%}" for k, v in found["shares"].items())
        + f"; at least {EQUAL:.1%}"
    )
    if args.no_requirements:
        return 0
    verdict.check(found["recall"] >= RECALL, f"recall {found['recall']:.3%}")
    for name, value in found["shares"].items():
        verdict.check(value >= EQUAL, f"{name} equal on {value:.3%}")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
