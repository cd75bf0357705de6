"""Rows, their words, and what makes two of them near-duplicates."""

import re
from collections import Counter, defaultdict
from pathlib import Path

SET, MULTISET, MIN_TOKENS = 0.8, 0.7, 20

# A word is a maximal run of alphanumerics and `_` that begins like a Python identifier.
WORD = re.compile(r"(?<!\w)[A-Za-z_]\w*")


def read(file: Path) -> tuple:
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(file, columns=["id", "code"])
    return rows["id"].to_pylist(), rows["code"].to_pylist()


class Forest:
    """Union-find with path halving."""

    def __init__(self, size: int) -> None:
        self.parent = list(range(size))

    def find(self, at: int) -> int:
        parent = self.parent
        while parent[at] != at:
            parent[at] = at = parent[parent[at]]
        return at

    def join(self, one: int, other: int) -> None:
        one, other = self.find(one), self.find(other)
        if one != other:
            self.parent[max(one, other)] = min(one, other)

    def groups(self) -> list:
        found = defaultdict(list)
        for at in range(len(self.parent)):
            found[self.find(at)].append(at)
        return list(found.values())


def jaccards(one: Counter, other: Counter) -> tuple:
    """Set and multiset Jaccard, as float divisions of exact numbers."""
    if len(one) > len(other):
        one, other = other, one
    common = [(count, other[token]) for token, count in one.items() if token in other]
    least = sum(min(pair) for pair in common)
    return (
        len(common) / (len(one) + len(other) - len(common)),
        least / (one.total() + other.total() - least),
    )
