"""Both results side by side, and the class of every disagreement by evidence."""

from collections import Counter, defaultdict

from mining.by_galeras import Row
from mining.by_pydriller import Method
from mining.evidence import Change, Definition, History, Source, lizard_methods

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
