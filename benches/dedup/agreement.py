"""Whether two results agree, and who is right where they do not."""

import itertools
import math
from collections import Counter, defaultdict
from pathlib import Path

from dedup.words import MIN_TOKENS, MULTISET, SET, WORD, Forest, jaccards, read
from harness import Verdict


def flagged(components: list) -> int:
    """How many rows would be dropped if each component keeps one."""
    return sum(len(component) - 1 for component in components)


def of_row(components: list) -> dict:
    return {key: at for at, component in enumerate(components) for key in component}


def recall(found: list, wanted: list) -> dict:
    """Of the wanted rows, pairs within a component, and components: the share found alike."""
    place = of_row(found)
    both = rows = 0
    for component in wanted:
        parts = Counter(place.get(key) for key in component)
        parts.pop(None, None)
        both += sum(math.comb(count, 2) for count in parts.values())
        rows += sum(parts.values())
    same = {frozenset(c) for c in found} & {frozenset(c) for c in wanted}
    return {
        "rows in a component": (rows, sum(map(len, wanted))),
        "pairs within a component": (both, sum(math.comb(len(c), 2) for c in wanted)),
        "equal components": (len(same), len(wanted)),
        "flagged rows": (flagged(found), flagged(wanted)),
    }


def rust_words(code: str) -> list:
    r"""The words where a run is of Unicode's Alphabetic and N*, not Python's `\w`."""
    if code.isascii():
        return WORD.findall(code)
    import regex

    return [
        w
        for w in regex.findall(r"[\p{Alphabetic}\p{N}_]+", code)
        if w[0] == "_" or w[0].isascii() and w[0].isalpha()
    ]


class Documents:
    """The token counts of the rows."""

    def __init__(self, file: Path, words=WORD.findall) -> None:
        self.codes = dict(zip(*read(file), strict=True))
        self.words = words
        self.counters: dict = {}

    def counter(self, key: str) -> Counter:
        if key not in self.counters:
            self.counters[key] = Counter(self.words(self.codes[key]))
        return self.counters[key]

    def other_words(self) -> set:
        r"""Rows whose words are others if a run is not Python's `\w+`."""
        return {
            key
            for key, code in self.codes.items()
            if not code.isascii() and WORD.findall(code) != rust_words(code)
        }

    def bags(self, component) -> list:
        """Rows with the same tokens, together; those with too few left out."""
        found = defaultdict(list)
        for key in sorted(component):
            if self.counter(key).total() >= MIN_TOKENS:
                found[frozenset(self.counter(key).items())].append(key)
        return list(found.values())

    def similar(self, one: str, other: str) -> bool:
        mine, its = self.counter(one), self.counter(other)
        if min(len(mine), len(its)) < (SET - 1e-6) * max(len(mine), len(its)):
            return False
        by_set, by_multiset = jaccards(mine, its)
        return by_set >= SET and by_multiset >= MULTISET

    def parts(self, component) -> list:
        """The components of a set of rows, found again by all its pairs."""
        bags = self.bags(component)
        forest = Forest(len(bags))
        for one, other in itertools.combinations(range(len(bags)), 2):
            if forest.find(one) != forest.find(other):
                if self.similar(bags[one][0], bags[other][0]):
                    forest.join(one, other)
        groups = [[key for bag in group for key in bags[bag]] for group in forest.groups()]
        return sorted({frozenset(group) for group in groups if len(group) > 1}, key=min)

    def pair_recall(self, wanted: list, near: list, largest: int) -> tuple:
        """Similar pairs among rensa's candidates, all similar pairs, components left out.

        Rows with the same tokens are always found, and count with their number.
        """
        known = {(one, other) for one, others in near for other in others}
        first = {}
        found = of_all = left_out = 0
        for component in wanted:
            bags = self.bags(component)
            if len(bags) > largest:
                left_out += 1
                continue
            for bag in bags:
                found += math.comb(len(bag), 2)
                of_all += math.comb(len(bag), 2)
                first |= {key: bag[0] for key in bag}
            keys = [set(bag) for bag in bags]
            for one, other in itertools.combinations(range(len(bags)), 2):
                if self.similar(bags[one][0], bags[other][0]):
                    pairs = len(keys[one]) * len(keys[other])
                    of_all += pairs
                    # A bag's row in `near` is its first in the file, which is sorted by id.
                    pair = (bags[one][0], bags[other][0])
                    found += pairs * (pair in known or pair[::-1] in known)
        return found, of_all, left_out


def differences(name: str, found: list, ours: list, file: Path, verdict: Verdict) -> None:
    r"""Components that only one side has; each judged by recomputation.

    Python's `\w` and Unicode's alphanumerics differ on few signs: each side is recomputed with
    its own words, and a difference is explained if it hangs together with such a row.
    """
    theirs, mine = ({frozenset(c) for c in side} for side in (found, ours))
    if theirs == mine:
        print(f"  {name}: all {len(mine)} components equal those of exact")
        return
    python, rust = Documents(file), Documents(file, rust_words)
    other_words = python.other_words()
    only = [(name, python, c) for c in theirs - mine] + [("exact", rust, c) for c in mine - theirs]
    touched = set(other_words)
    while True:
        more = {key for _, _, c in only if c & touched for key in c} - touched
        if not more:
            break
        touched |= more
    classes, shown = Counter(), 0
    for side, documents, component in sorted(only, key=lambda one: min(one[2])):
        parts = documents.parts(component)
        kind = "holds when recomputed" if parts == [component] else "falls apart"
        if component & touched:
            kind += ", with a row whose words differ"
        classes[side, kind] += 1
        if shown < 10:
            shown += 1
            print(f"  only in {side}: {sorted(component)[:3]} ({len(component)} rows) {kind}")
    for (side, kind), count in sorted(classes.items()):
        print(f"  {name} against exact: {count} components only in {side}: {kind}")
    explained = "holds when recomputed, with a row whose words differ"
    bad = [kind for _, kind in classes if kind != explained]
    verdict.check(not bad, f"the components of {name} and of exact differ: {dict(classes)}")
