"""Every number of Tables I and II of `workflows/galeras.yaml` is that of DuckDB.

What it shows: Table I (mean and sample standard deviation of the features of each testbed) and
Table II (sampled rows, duplicates, their share, size) are computed again by DuckDB from the
testbeds and their duplicates, which the workflow wrote. Counts must be equal, means, deviations
and shares to 1e-9 of their size. With a Jaccard similarity of its own the script finds that no
two rows of a testbed are near-duplicates any more, and that the similarities of every duplicate
to its `duplicate_of` are right to the last bit.

How to run it: `python3 tests/scripts/duckdb_tables.py [--testbeds FOLDER (default: testbeds of
this clone)] [--table-1 FILE] [--table-2 FILE] [--names a,b,..] [--kept FILE ...]
[--relative 1e-9] [--venv FOLDER]`. It runs nothing of Galeras: run the workflow before,
with `--set tokens=word`, which is what the script counts. A
`duplicate_of` is looked for in the testbed, in its duplicates and in the files of `--kept`
(Parquet), for a kept row that a later step may have dropped.

What it prints: a line per number with ours and DuckDB's, a line per testbed with the compared
pairs, the count of numbers. Exit code 1 if anything differs, is missing or is left over.
"""

import argparse
import csv
import math
import os
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import ROOT, Verdict, in_venv, pinned  # noqa: E402

PINS = {"duckdb": "2.0.0", "regex": "2026.11.15"}
SET, MULTISET, MIN_TOKENS = 0.8, 0.7, 20

# All names of files and columns, here alone.
TESTBEDS = ["random_cut", "with_docstring", "from_docstring", "commit_gen", "summarization_gen"]
LABELS = {
    "random_cut": "RandomCut",
    "with_docstring": "WithDocString",
    "from_docstring": "FromDocString",
    "commit_gen": "CommitGen",
    "summarization_gen": "SummarizationGen",
}  # as the tables call them
FEATURES = [
    "n_ast_errors",
    "ast_levels",
    "n_ast_nodes",
    "n_whitespaces",
    "complexity",
    "nloc",
    "token_counts",
    "n_identifiers",
]
FILE, DUPLICATES = "{}.parquet", "{}_duplicates.parquet"
TABLE_1, TABLE_2 = "table_1_numbers.csv", "table_2.csv"
T1 = {"testbed": "testbed", "feature": "feature", "n": "n", "mean": "mean", "std": "std"}
T2 = {
    "testbed": "testbed",
    "sampled": "sampled",
    "duplicates": "duplicates",
    "percent": "percent",
    "size": "size",
}
ID, TEXT = "id", "code_no_docstring"  # of a row; the column that is compared
OF, BY_SET, BY_MULTISET = "duplicate_of", "jaccard", "multiset_jaccard"


# ---------------------------------------------------------------- the numbers


class Numbers:
    """Compares numbers, a printed line each, and counts them."""

    def __init__(self, verdict: Verdict, relative: float) -> None:
        self.verdict, self.relative = verdict, relative
        self.compared = self.equal = 0
        self.worst = 0.0

    def compare(self, name: str, ours: str | None, theirs, exact: bool) -> None:
        self.compared += 1
        missing = ours in (None, "")
        if missing or theirs is None:
            holds = missing and theirs is None
        elif exact:
            # A count may be written as 3000 or 3000.0, but is a whole number.
            holds = float(ours) == theirs
        else:
            holds = math.isclose(float(ours), theirs, rel_tol=self.relative, abs_tol=0.0)
            if theirs:
                self.worst = max(self.worst, abs(float(ours) - theirs) / abs(theirs))
        self.equal += holds
        print(
            f"{name:55} {ours if not missing else '-':>24} {theirs!r:>24} "
            f"{'equal' if holds else 'DIFFERS'}"
        )
        self.verdict.check(holds, f"{name}: ours {ours}, DuckDB's {theirs}")


def read_table(file: Path, keys: list, columns: dict, verdict: Verdict) -> dict:
    """The rows of one of our tables, by their keys."""
    if not verdict.check(file.exists(), f"{file} is missing"):
        return {}
    with file.open(newline="", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    absent = [name for name in columns.values() if rows and name not in rows[0]]
    if not verdict.check(not absent, f"{file} has no columns {absent}"):
        return {}
    found = {tuple(row[columns[key]] for key in keys): row for row in rows}
    verdict.check(len(found) == len(rows), f"{file} has a row twice")
    return found


def table_1(args, db, numbers: Numbers, verdict: Verdict) -> None:
    ours = read_table(args.table_1, ["testbed", "feature"], T1, verdict)
    # RawData and RawDataDocstring are no testbeds.
    ours = {key: row for key, row in ours.items() if not key[0].startswith("RawData")}
    for name in args.names:
        file = args.testbeds / FILE.format(name)
        if not verdict.check(file.exists(), f"{file} is missing"):
            continue
        for feature in FEATURES:
            n, mean, std = db.execute(
                f'SELECT count("{feature}"), avg("{feature}"), stddev_samp("{feature}") '
                "FROM read_parquet(?)",
                [str(file)],
            ).fetchone()
            row = ours.pop((LABELS.get(name, name), feature), {})
            for what, value, exact in (("n", n, True), ("mean", mean, False), ("std", std, False)):
                numbers.compare(f"table_1 {name} {feature} {what}", row.get(T1[what]), value, exact)
    verdict.check(not ours, f"{args.table_1} has rows that should not be: {sorted(ours)}")


def table_2(args, db, numbers: Numbers, verdict: Verdict) -> None:
    ours = read_table(args.table_2, ["testbed"], T2, verdict)
    for name in args.names:
        files = [args.testbeds / pattern.format(name) for pattern in (FILE, DUPLICATES)]
        absent = [str(file) for file in files if not file.exists()]
        if not verdict.check(not absent, f"{name}: {absent} missing"):
            continue
        sampled, duplicates, percent, size = db.execute(
            "WITH counts AS (SELECT (SELECT count(*) FROM read_parquet(?)) AS size, "
            "(SELECT count(*) FROM read_parquet(?)) AS duplicates) "
            "SELECT size + duplicates, duplicates, "
            "100.0::DOUBLE * duplicates / (size + duplicates), size FROM counts",
            [str(f) for f in files],
        ).fetchone()
        row = ours.pop((LABELS.get(name, name),), {})
        for what, value, exact in (
            ("sampled", sampled, True),
            ("duplicates", duplicates, True),
            ("percent", percent, False),
            ("size", size, True),
        ):
            numbers.compare(f"table_2 {name} {what}", row.get(T2[what]), value, exact)
    verdict.check(not ours, f"{args.table_2} has rows that should not be: {sorted(ours)}")


# ---------------------------------------------------------------- the duplicates

ASCII = re.compile(r"(?<!\w)[A-Za-z_]\w*")


def counter(code: str) -> Counter:
    """The words of a text: runs of alphanumerics and `_` that begin like an identifier."""
    if code.isascii():
        return Counter(ASCII.findall(code))
    import regex

    runs = regex.findall(r"[\p{Alphabetic}\p{N}_]+", code)
    return Counter(
        word for word in runs if word[0] == "_" or word[0].isascii() and word[0].isalpha()
    )


def jaccards(one: Counter, other: Counter) -> tuple:
    common = len(one.keys() & other.keys())
    both = (one & other).total()
    return (
        common / (len(one) + len(other) - common) if one or other else 1.0,
        both / (one.total() + other.total() - both) if one or other else 1.0,
    )


def similar_pairs(bags: dict) -> tuple:
    """All similar pairs, and how many pairs were compared by their sets.

    A similar pair has sizes within 0.8 of each other; every such pair is compared.
    """
    able = sorted((len(bag), key) for key, bag in bags.items() if bag.total() >= MIN_TOKENS)
    sets = {key: frozenset(bag) for key, bag in bags.items()}
    pairs, compared, first = [], 0, 0
    for at, (size, key) in enumerate(able):
        while able[first][0] < SET * size - 1e-6:
            first += 1
        mine = sets[key]
        for smaller, other in able[first:at]:
            compared += 1
            common = len(mine & sets[other])
            if common / (size + smaller - common) >= SET:
                if jaccards(bags[key], bags[other])[1] >= MULTISET:
                    pairs.append((other, key))
    return pairs, compared


def duplicates(args, db, numbers: Numbers, verdict: Verdict) -> None:
    kept = {}
    for file in args.kept:
        kept |= dict(
            db.execute(f'SELECT "{ID}", "{TEXT}" FROM read_parquet(?)', [str(file)]).fetchall()
        )
    for name in args.names:
        file, dropped = (args.testbeds / pattern.format(name) for pattern in (FILE, DUPLICATES))
        if not (file.exists() and dropped.exists()):
            continue
        rows = db.execute(f'SELECT "{ID}", "{TEXT}" FROM read_parquet(?)', [str(file)]).fetchall()
        bags = {key: counter(code) for key, code in rows}
        verdict.check(len(bags) == len(rows), f"{name}: an id occurs twice")
        pairs, compared = similar_pairs(bags)
        verdict.check(not pairs, f"{name}: {len(pairs)} pairs are near-duplicates: {pairs[:3]}")

        listed = db.execute(
            f'SELECT "{ID}", "{TEXT}", "{OF}", "{BY_SET}", "{BY_MULTISET}" FROM read_parquet(?)',
            [str(dropped)],
        ).fetchall()
        texts = {key: code for key, code, *_ in listed}
        verdict.check(len(texts) == len(listed), f"{name}: a duplicate is listed twice")
        both = sorted(texts.keys() & bags.keys())
        verdict.check(not both, f"{name}: duplicates in the testbed: {both[:3]}")
        places = defaultdict(int)
        below = unlike = 0
        for key, code, of, by_set, by_multiset in listed:
            where = next(
                (
                    place
                    for place, known in (("testbed", bags), ("duplicates", texts), ("kept", kept))
                    if of in known and of != key
                ),
                None,
            )
            places[where] += 1
            if not verdict.check(where, f"{name} {key}: duplicate_of {of} is nowhere"):
                continue
            other = (
                bags[of]
                if where == "testbed"
                else counter(texts[of] if where == "duplicates" else kept[of])
            )
            mine = counter(code)
            wanted = jaccards(mine, other)
            numbers.compared += 2
            same = [a == b for a, b in zip((by_set, by_multiset), wanted, strict=False)]
            numbers.equal += sum(same)
            unlike += not all(same)
            verdict.check(
                all(same),
                f"{name} {key}: similarity to {of} {by_set}, {by_multiset}; "
                f"should be {wanted[0]!r}, {wanted[1]!r}",
            )
            verdict.check(
                mine.total() >= MIN_TOKENS and other.total() >= MIN_TOKENS,
                f"{name} {key}: under {MIN_TOKENS} words",
            )
            below += wanted[0] < SET or wanted[1] < MULTISET
        print(
            f"{name}: {compared} of {math.comb(len(bags), 2)} pairs compared (the others' sizes "
            f"differ too much), {len(pairs)} near-duplicates left; {len(listed)} duplicates "
            f"recomputed, {unlike} differ, {below} similar only through others; duplicate_of "
            f"is in {dict(places)}",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--testbeds", type=Path, default=ROOT / "testbeds")
    parser.add_argument("--table-1", type=Path, help=f"default: {TABLE_1} of --testbeds")
    parser.add_argument("--table-2", type=Path, help=f"default: {TABLE_2} of --testbeds")
    parser.add_argument("--names", type=lambda text: text.split(","), default=TESTBEDS)
    parser.add_argument("--kept", type=Path, nargs="*", default=[], help="more kept rows")
    parser.add_argument("--relative", type=float, default=1e-9, help="of means and deviations")
    parser.add_argument("--venv", type=Path, default=base / "galeras-bench" / "venv-tables")
    args = parser.parse_args()
    in_venv(*pinned(PINS), folder=args.venv)
    import duckdb

    args.table_1 = args.table_1 or args.testbeds / TABLE_1
    args.table_2 = args.table_2 or args.testbeds / TABLE_2
    verdict, db = Verdict(), duckdb.connect()
    numbers = Numbers(verdict, args.relative)
    print(f"{'number':55} {'ours':>24} {'DuckDB ' + duckdb.__version__:>24}")
    table_1(args, db, numbers, verdict)
    table_2(args, db, numbers, verdict)
    of_tables = numbers.compared
    duplicates(args, db, numbers, verdict)
    print(
        f"\n{numbers.equal} of {numbers.compared} numbers equal: {of_tables} of the tables by "
        f"DuckDB (largest relative difference {numbers.worst:.1e}), "
        f"{numbers.compared - of_tables} similarities of duplicates recomputed"
    )
    expected = len(args.names) * (len(FEATURES) * 3 + 4)
    verdict.check(of_tables == expected, f"{of_tables} numbers of the tables, not {expected}")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
