"""What git, the syntax tree and lizard say of commits, files and lines."""

import bisect
import functools
import re
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path


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
    """What git says of commits, files and lines. It lives as long as the script."""

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

    @functools.lru_cache(256)  # noqa: B019
    def source(self, name: str | None) -> Source:
        return Source(self.blob(name) if name else b"")

    @functools.lru_cache(64)  # noqa: B019
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

    @functools.lru_cache(256)  # noqa: B019
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
