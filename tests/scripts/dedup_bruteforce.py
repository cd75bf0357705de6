"""`dedup` is exact, and nothing but the rows and the arguments counts.

What it shows: on a sample of real methods, and made rows at the edges of every rule, all pairs
of rows are compared by brute force (sparse matrix products of integers), the components are
found by another union-find, and the ports of `dedup` must say the same: `clusters` has exactly
these sets of ids, each under its smallest id; `rejects` has every other row of them, with the
Jaccard similarities of the row and its `duplicate_of` equal to the last bit and the row's own
columns unchanged; `out` has the rest; `summary` the counts. `method: minhash` may miss pairs,
but joins no rows that the exact one does not. `--jobs 1`, `2` and `4`, `--memory 16MB` and `1GB`,
and the same rows in another order give the same digest and the same file for every port.
With `order_by` the first row by that column, then by id, is kept.

How to run it: `python3 tests/scripts/dedup_bruteforce.py --methods FILE.parquet (columns id,
code) [--rows 20000] [--seed 7] [--venv FOLDER] [--no-memory] [--no-minhash] [--no-order]
[--duplicate-of kept|member] [--galeras PATH]`. The sample is the rows with the smallest MD5 of
seed and id. `--duplicate-of member` allows any row of the component, and asks for a similar one.

What it prints: the pairs and components, each comparison with its counts, a line per run with
its seconds and whether its ports are equal. Exit code 1 if anything differs.
"""

import argparse
import csv
import hashlib
import json
import math
import os
import random
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from dedup_rows import edges, sample, write  # noqa: E402
from harness import Verdict, arguments, in_venv, pinned, run, table, work_folder  # noqa: E402

PINS = {"pyarrow": "26.0.1", "numpy": "2.4.6", "scipy": "1.17.1", "regex": "2026.11.15"}
SET, MULTISET, MIN_TOKENS = 0.8, 0.7, 20
STEP, PORTS = "unique", ["out", "rejects", "clusters", "summary"]
# The columns of the ports, here alone.
CLUSTER = {"id": "id", "cluster": "cluster", "size": "size"}
REJECT = {
    "id": "id",
    "of": "duplicate_of",
    "set": "jaccard",
    "multiset": "multiset_jaccard",
    "texts": ["step", "rule", "reason"],
}
SUMMARY = {"rows": "rows", "duplicates": "duplicates", "kept": "kept", "percent": "percent"}
WORKFLOW = """\
galeras: 1
name: dedup-check
steps:
  methods: {{ op: read, with: {{ path: {file}, key: [id] }} }}
  unique:  {{ op: dedup, from: methods, with: {{ column: code{more} }} }}
outputs:
  out:      {{ from: unique, path: out.parquet }}
  rejects:  {{ from: unique.rejects, path: rejects.parquet }}
  clusters: {{ from: unique.clusters, path: clusters.parquet }}
  summary:  {{ from: unique.summary, path: summary.csv }}
"""


def counters(codes: list) -> list:
    """The words of each text with their numbers."""
    import regex

    runs = regex.compile(r"[\p{Alphabetic}\p{N}_]+")
    first = set("_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return [Counter(word for word in runs.findall(code) if word[0] in first) for code in codes]


def other_words(codes: list) -> int:
    r"""How many texts have other words if a run is Python's `\w+`."""
    import re

    plain = re.compile(r"(?<!\w)[A-Za-z_]\w*")
    return sum(
        not code.isascii() and Counter(plain.findall(code)) != found
        for code, found in zip(codes, counters(codes), strict=False)
    )


def jaccards(one: Counter, other: Counter) -> tuple:
    """Set and multiset Jaccard: float divisions of exact numbers."""
    common = len(one.keys() & other.keys())
    return (
        common / (len(one) + len(other) - common),
        (one & other).total() / (one | other).total(),
    )


def similar_pairs(bags: list, block: int = 500) -> list:
    """All pairs of rows (indices) that are similar: every row against every later one."""
    import numpy
    import scipy.sparse

    able = [at for at, bag in enumerate(bags) if bag.total() >= MIN_TOKENS]
    number: dict = {}
    indices, ends = [], [0]
    for at in able:
        indices += [number.setdefault(word, len(number)) for word in bags[at]]
        ends.append(len(indices))
    ones = numpy.ones(len(indices), numpy.int32)
    matrix = scipy.sparse.csr_matrix((ones, indices, ends), (len(able), len(number)))
    # Words of many rows as a dense product (exact: far below 2**24), the others as a sparse one.
    many = numpy.asarray(matrix.sum(axis=0)).ravel() >= len(able) / 200
    dense = matrix[:, many].toarray().astype(numpy.float32)
    rest = matrix[:, ~many].tocsr()
    turned = rest.T.tocsr()
    sizes = numpy.diff(matrix.indptr).astype(numpy.int64)
    pairs = []
    for start in range(0, len(able), block):
        end = min(start + block, len(able))
        common = (dense[start:end] @ dense[start:].T).astype(numpy.int64)
        common += (rest[start:end] @ turned[:, start:]).toarray()
        union = sizes[start:end, None] + sizes[None, start:] - common
        for one, other in zip(*numpy.nonzero(common / union >= SET), strict=False):
            if one < other:
                pairs.append((able[start + int(one)], able[start + int(other)]))
    return [(one, other) for one, other in pairs if jaccards(bags[one], bags[other])[1] >= MULTISET]


def components(pairs: list) -> list:
    """Sets of connected rows, by union-find."""
    parent: dict = {}

    def find(at: int) -> int:
        while parent.setdefault(at, at) != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    for one, other in pairs:
        parent[find(one)] = find(other)
    groups = defaultdict(set)
    for at in list(parent):
        groups[find(at)].add(at)
    return list(groups.values())


class Result:
    """A run's digests and files."""

    def __init__(
        self,
        args: argparse.Namespace,
        work: Path,
        name: str,
        file: Path,
        *flags: str,
        more: str = "",
    ) -> None:
        folder = work / name
        folder.mkdir()
        flow = folder / "dedup.yaml"
        flow.write_text(WORKFLOW.format(file=json.dumps(str(file)), more=more))
        done = run(args.galeras, flow, folder / "cache", *flags)
        self.wall, self.seconds = done.wall, done.steps[STEP]["seconds"]
        self.digests = {
            port["port"]: (port["digest"], port["rows"])
            for port in done.steps[STEP].get("ports", [])
        }
        self.digest = done.steps[STEP].get("digest")
        out = folder / "cache-out"
        self.files = {}
        for port in PORTS:
            file = f"{port}.csv" if port == "summary" else f"{port}.parquet"
            found = sorted(out.rglob(file))
            if len(found) != 1:
                sys.exit(f"the run wrote {len(found)} files {file} to {out}")
            self.files[port] = found[0]

    def rows(self, port: str) -> list:
        """The rows of a port, as dictionaries."""
        if port == "summary":
            with self.files[port].open(newline="") as file:
                return list(csv.DictReader(file))
        import pyarrow.parquet

        return pyarrow.parquet.read_table(self.files[port]).to_pylist()

    def text(self, port: str) -> str:
        """A digest of a port's contents, in its order, which knows every bit of a float."""
        rows = self.rows(port)
        return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]


def some(found) -> str:
    found = sorted(found, key=repr)
    return f"{len(found)}, such as {found[:3]}"


def check_ports(
    name: str,
    result: Result,
    rows: list,
    bags: list,
    groups: list,
    args,
    verdict: Verdict,
    first=lambda row: row[0],
) -> None:
    """Every port against the components of the brute force."""
    by_id = {row[0]: at for at, row in enumerate(rows)}
    wanted = {}
    for group in groups:
        kept = min((rows[at] for at in group), key=first)[0]
        wanted[kept] = {rows[at][0] for at in group}
    cluster_of = {key: kept for kept, group in wanted.items() for key in group}

    found, sizes = defaultdict(set), {}
    listed = result.rows("clusters")
    for row in listed:
        found[row[CLUSTER["cluster"]]].add(row[CLUSTER["id"]])
        sizes[row[CLUSTER["id"]]] = row[CLUSTER["size"]]
    ours, theirs = ({frozenset(g) for g in side.values()} for side in (found, wanted))
    verdict.check(len(listed) == len(sizes), f"{name}: clusters lists an id twice")
    verdict.check(
        ours == theirs,
        f"{name}: clusters only of ours "
        f"{some(map(sorted, ours - theirs))}; missing {some(map(sorted, theirs - ours))}",
    )
    verdict.check(
        found.keys() == wanted.keys(), f"{name}: kept {some(found.keys() ^ wanted.keys())} differ"
    )
    wrong = [key for kept, group in found.items() for key in group if sizes[key] != len(group)]
    verdict.check(not wrong, f"{name}: size wrong on {some(wrong)}")

    rejects = result.rows("rejects")
    dropped = {key for key in cluster_of if key not in wanted}
    ids = [row[REJECT["id"]] for row in rejects]
    verdict.check(
        len(set(ids)) == len(ids) and set(ids) == dropped,
        f"{name}: rejects differ on {some(set(ids) ^ dropped)}",
    )
    other_row, other_of, other_numbers, not_similar, no_text = [], [], [], [], []
    with_kept = 0
    for row in rejects:
        key, of = row[REJECT["id"]], row[REJECT["of"]]
        at, place = by_id[key], by_id.get(of)
        if (row["code"], row["rank"]) != rows[at][1:]:
            other_row.append(key)
        no_text += [key] if not all(row.get(text) for text in REJECT["texts"]) else []
        if place is None or of == key or cluster_of.get(of) != cluster_of.get(key):
            other_of.append((key, of))
            continue
        with_kept += of == cluster_of[key]
        numbers = jaccards(bags[at], bags[place])
        if (row[REJECT["set"]], row[REJECT["multiset"]]) != numbers:
            other_numbers.append((key, of, row[REJECT["set"]], row[REJECT["multiset"]], *numbers))
        if numbers[0] < SET or numbers[1] < MULTISET:
            not_similar.append((key, of))
    if args.duplicate_of == "kept":
        verdict.check(
            with_kept == len(rejects),
            f"{name}: {len(rejects) - with_kept} rejects are not `duplicate_of` the kept",
        )
    else:
        verdict.check(not not_similar, f"{name}: not similar to duplicate_of {some(not_similar)}")
    verdict.check(not other_of, f"{name}: duplicate_of is not of the component {some(other_of)}")
    verdict.check(not other_numbers, f"{name}: other similarities {some(other_numbers)}")
    verdict.check(not other_row, f"{name}: rejects changed columns of {some(other_row)}")
    verdict.check(not no_text, f"{name}: no {REJECT['texts']} in {some(no_text)}")

    out = [(row["id"], row["code"], row["rank"]) for row in result.rows("out")]
    kept = [row for row in rows if row[0] not in dropped]
    verdict.check(sorted(out) == kept, f"{name}: out differs on {some(set(out) ^ set(kept))}")

    summary = result.rows("summary")
    counts = {"rows": len(rows), "duplicates": len(dropped), "kept": len(rows) - len(dropped)}
    if verdict.check(len(summary) == 1, f"{name}: summary has {len(summary)} rows"):
        for what, number in counts.items():
            verdict.check(
                int(summary[0][SUMMARY[what]]) == number,
                f"{name}: summary {what} is {summary[0][SUMMARY[what]]}, not {number}",
            )
        percent = float(summary[0][SUMMARY["percent"]])
        exact = 100 * len(dropped) / len(rows)
        verdict.check(
            math.isclose(percent, exact, rel_tol=1e-12),
            f"{name}: summary percent is {percent}, not {exact}",
        )
    print(
        f"{name}: {len(found)} clusters of {sum(map(len, found.values()))} rows compared, "
        f"{len(rejects)} rejects recomputed ({with_kept} duplicates of the kept row; "
        f"{len(not_similar)} similar to it only through others), {len(out)} kept",
        flush=True,
    )


def main() -> int:
    parser = arguments(__doc__)
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--methods", type=Path, required=True, help="Parquet with id and code")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=7, help="of the sample and the shuffle")
    parser.add_argument("--venv", type=Path, default=base / "galeras-bench" / "venv-dedup-check")
    parser.add_argument("--duplicate-of", choices=["kept", "member"], default="kept")
    parser.add_argument("--no-memory", action="store_true", help="leave out the runs of --memory")
    parser.add_argument("--no-minhash", action="store_true", help="leave out method: minhash")
    parser.add_argument("--no-order", action="store_true", help="leave out order_by")
    args = parser.parse_args()
    in_venv(*pinned(PINS), folder=args.venv)
    work, verdict = work_folder(args), Verdict()

    rows = sample(args.methods, args.rows, args.seed)
    file = write(rows, work / "sorted.parquet")
    shuffled = list(rows)
    random.Random(args.seed).shuffle(shuffled)
    turned = write(shuffled, work / "shuffled.parquet")
    started = time.perf_counter()
    codes = [row[1] for row in rows]
    bags = counters(codes)
    pairs = similar_pairs(bags)
    groups = components(pairs)
    print(
        f"{len(rows)} rows ({len(edges())} of them made, "
        f"{sum(bag.total() < MIN_TOKENS for bag in bags)} with under {MIN_TOKENS} words, "
        f"{other_words(codes)} with other words by Python's \\w); brute force: {len(pairs)} "
        f"similar pairs, {len(groups)} components of {sum(map(len, groups))} rows, largest "
        f"{max(map(len, groups), default=0)}; {time.perf_counter() - started:.1f} s",
        flush=True,
    )

    first = Result(args, work, "plain", file)
    check_ports("exact", first, rows, bags, groups, args, verdict)
    variants = [(f"--jobs {n}", file, ["--jobs", str(n)]) for n in (1, 2, 4)]
    if not args.no_memory:
        variants += [(f"--memory {m}", file, ["--memory", m]) for m in ("16MB", "1GB")]
        variants.append(("--jobs 1 --memory 16MB", file, ["--jobs", "1", "--memory", "16MB"]))
    variants.append(("rows shuffled", turned, []))
    variants.append(("rows shuffled, --jobs 1", turned, ["--jobs", "1"]))
    lines = [["plain", f"{first.wall:.2f}", f"{first.seconds:.2f}", "", ""]]
    texts = {port: first.text(port) for port in PORTS}
    for at, (name, data, flags) in enumerate(variants):
        result = Result(args, work, f"variant-{at}", data, *flags)
        same_digests = result.digests == first.digests and result.digest == first.digest
        verdict.check(
            same_digests,
            f"{name}: digests {result.digest}, {result.digests}; plain "
            f"{first.digest}, {first.digests}",
        )
        same = 0
        for port in PORTS:
            equal = result.text(port) == texts[port]
            if not equal:
                a, b = (sorted(map(repr, r.rows(port))) for r in (result, first))
                how = "only the order of the rows" if a == b else "the rows"
                verdict.check(False, f"{name}: {port} differs from plain ({how})")
            same += equal
        lines.append(
            [
                name,
                f"{result.wall:.2f}",
                f"{result.seconds:.2f}",
                f"{len(first.digests)} equal" if same_digests else "DIFFER",
                f"{same} of {len(PORTS)} equal",
            ]
        )
    table(["run", "wall s", "step s", "digests", "files"], lines)

    if not args.no_order:
        more = ", order_by: [rank]"
        ordered = Result(args, work, "ordered", file, more=more)
        check_ports(
            "order_by", ordered, rows, bags, groups, args, verdict, lambda row: (row[2], row[0])
        )
        again = Result(args, work, "ordered-shuffled", turned, more=more)
        verdict.check(
            all(again.text(port) == ordered.text(port) for port in PORTS),
            "order_by: the rows in another order give other files",
        )
    if not args.no_minhash:
        result = Result(args, work, "minhash", file, more=", method: minhash")
        found = defaultdict(set)
        for row in result.rows("clusters"):
            found[row[CLUSTER["cluster"]]].add(row[CLUSTER["id"]])
        of = {rows[at][0]: at_group for at_group, group in enumerate(groups) for at in group}
        wrong = [
            sorted(group)
            for group in found.values()
            if len({of.get(key, key) for key in group}) > 1
        ]
        verdict.check(not wrong, f"minhash: joined rows that are not connected {some(wrong)}")
        flags = sum(len(group) - 1 for group in groups)
        mine = sum(len(group) - 1 for group in found.values())
        print(
            f"minhash: {mine} of {flags} duplicates ({mine / flags if flags else 1:.3%}), "
            f"{result.seconds:.2f} s"
        )
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
