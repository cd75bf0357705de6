"""The printed comparison: recall, disagreements by class, shares of equal features."""

import re
from collections import defaultdict

from mining.by_galeras import FEATURES
from mining.comparison import OTHER, Comparison, cut
from mining.evidence import History, lizard_methods

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
                kinds[comparison.classify(lambda p, name=name: why_feature(p, name), pair)].append(
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
