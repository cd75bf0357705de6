"""`dedup` with an input `against` is exact, and nothing but the rows counts.

What it shows: two samples of real methods, and made rows at the edges of every rule, are compared
by brute force, every row of one with every row of the other: Jaccard similarities and containments
of 8-grams and 13-grams from sparse matrix products of integers. Then `rejects` must have exactly
the rows that are near by one of the conditions, each with the nearest row (`near_to`,
`near_to_source`) and the four measures equal to the last bit; `out`, `clusters` and the other
rejects must be those of a `dedup` of the rest alone; `summary` must have the counts. With
`against_ids: other` the input is compared with itself, and with `same` each row with one of the
same id. `--jobs 1`, `2` and `4`, `--memory 16MB`, `64MB` and `1GB`, and rows in another order give
the same digest of every port.

How to run it: `python3 tests/scripts/dedup_against_bruteforce.py --methods FILE.parquet (columns
id, code) [--rows 20000] [--seed 7] [--venv FOLDER] [--galeras PATH]`. The samples have that many
rows each, chosen by the MD5 of seed and id.

What it prints: the near pairs and rows by condition, each comparison with its counts, a line per
run with its seconds and whether its digests are equal. Exit code 1 if anything differs.
"""

import argparse
import csv
import json
import os
import random
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from dedup_bruteforce import PINS, jaccards, some  # noqa: E402
from dedup_rows import edges, sample, words  # noqa: E402
from harness import Run, Verdict, arguments, in_venv, pinned, run, table, work_folder  # noqa: E402

SET, MULTISET, MIN_TOKENS, LENGTHS = 0.8, 0.7, 20, (8, 13)
SHARES = ("containment_8", "containment_13")
PORTS = ["out", "rejects", "clusters", "summary"]
WORKFLOW = """\
galeras: 1
name: against-check
steps:
  rows:   {{ op: read, with: {{ path: {rows}, key: [id] }} }}
  corpus: {{ op: read, with: {{ path: {corpus}, key: [task] }} }}
  unique:
    op: dedup
    from: {{ input: rows, against: {against} }}
    with: {{ column: code, {more} }}
outputs:
  out:      {{ from: unique, path: out.parquet }}
  rejects:  {{ from: unique.rejects, path: rejects.parquet }}
  clusters: {{ from: unique.clusters, path: clusters.parquet }}
  summary:  {{ from: unique.summary, path: summary.csv }}
"""
ALONE = """\
galeras: 1
name: alone
steps:
  rows:   {{ op: read, with: {{ path: {rows}, key: [id] }} }}
  unique: {{ op: dedup, from: rows, with: {{ column: code }} }}
outputs:
  out:      {{ from: unique, path: out.parquet }}
  rejects:  {{ from: unique.rejects, path: rejects.parquet }}
  clusters: {{ from: unique.clusters, path: clusters.parquet }}
  summary:  {{ from: unique.summary, path: summary.csv }}
"""
CORPUS = "against_column: text, against_id: task, against_source: source"


class Text:
    """A text's words in order, as numbers, with what is compared of them."""

    def __init__(self, words: list, numbers: dict) -> None:
        from collections import Counter

        self.words = [numbers.setdefault(word, len(numbers)) for word in words]
        self.bag = Counter(self.words)
        self.grams = [
            {tuple(self.words[at : at + n]) for at in range(len(self.words) - n + 1)}
            for n in LENGTHS
        ]

    def near(self, other: "Text") -> tuple:
        """Whether both are similar, and the four measures of this one against the other."""
        similarities = jaccards(self.bag, other.bag)
        shares = [
            len(own & others) / len(own) if own else None
            for own, others in zip(self.grams, other.grams, strict=True)
        ]
        similar = similarities[0] >= SET and similarities[1] >= MULTISET
        return similar, *similarities, *shares


def texts(codes: list, numbers: dict) -> list:
    import regex

    runs = regex.compile(r"[\p{Alphabetic}\p{N}_]+")
    first = set("_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    found = ([word for word in runs.findall(code) if word[0] in first] for code in codes)
    return [Text(words, numbers) for words in found]


def matrix(rows: list, numbers: dict):
    """Rows of things as a sparse matrix of ones."""
    import numpy
    import scipy.sparse

    indices, ends = [], [0]
    for row in rows:
        indices += [numbers.setdefault(thing, len(numbers)) for thing in row]
        ends.append(len(indices))
    ones = numpy.ones(len(indices), numpy.int32)
    return ones, indices, ends, scipy.sparse.csr_matrix


def common(left: list, right: list, block: int = 500):
    """Of every pair that has something in common: (row, other, number of common things)."""
    import numpy

    numbers: dict = {}
    one, other = matrix(left, numbers), matrix(right, numbers)
    shape = max(len(numbers), 1)
    one, other = (
        make((ones, indices, ends), (len(ends) - 1, shape))
        for ones, indices, ends, make in (one, other)
    )
    # Things of many rows as a dense product (exact: far below 2**24), the others as a sparse one.
    often = numpy.asarray(other.sum(axis=0)).ravel() >= max(len(right) / 200, 2)
    dense = [side[:, often].toarray().astype(numpy.float32) for side in (one, other)]
    rest, turned = one[:, ~often].tocsr(), other[:, ~often].T.tocsr()
    for start in range(0, len(left), block):
        end = min(start + block, len(left))
        counts = (dense[0][start:end] @ dense[1].T).astype(numpy.int64)
        counts += (rest[start:end] @ turned).toarray()
        yield start, counts


def near_pairs(left: list, right: list) -> set:
    """All pairs (indices) that are near: every row with every other one."""
    import numpy

    able = [
        [at for at, t in enumerate(side) if len(t.words) >= MIN_TOKENS] for side in (left, right)
    ]
    one, other = ([side[at] for at in able] for side, able in zip((left, right), able, strict=True))
    found = set()
    if not one or not other:
        return found

    def note(start: int, mask) -> None:
        for row, column in zip(*numpy.nonzero(mask), strict=True):
            found.add((able[0][start + int(row)], able[1][int(column)]))

    sizes = [numpy.array([len(t.bag) for t in side], numpy.int64) for side in (one, other)]
    for start, counts in common([t.bag for t in one], [t.bag for t in other]):
        union = sizes[0][start : start + len(counts), None] + sizes[1][None, :] - counts
        note(start, counts / union >= SET)
    found = {(a, b) for a, b in found if jaccards(left[a].bag, right[b].bag)[1] >= MULTISET}
    all_grams = numpy.array([max(len(t.grams[0]), 1) for t in one], numpy.int64)
    for start, counts in common([t.grams[0] for t in one], [t.grams[0] for t in other]):
        note(start, counts / all_grams[start : start + len(counts), None] >= 0.7)
    return found


def order(measures: tuple) -> tuple:
    """What counts first in being near."""
    similar, one, multi, eight, thirteen = measures
    shares = tuple(-1.0 if share is None else share for share in (eight, thirteen))
    return (1, one, multi, *shares) if similar else (0, *shares, one, multi)


def nearest(left: list, right: list, names: list, pairs) -> dict:
    """Of each near row the nearest: (name, source, measures)."""
    best: dict = {}
    for a, b in pairs:
        measures = left[a].near(right[b])
        rank = ([-x for x in order(measures)], *names[b])
        if a not in best or rank < best[a][0]:
            best[a] = (rank, (*names[b], measures))
    return {a: found for a, (_, found) in best.items()}


def made() -> tuple:
    """Made rows on both sides, at the edges of the rules."""
    left = [(key, code) for at, (key, code) in enumerate(edges()) if at % 2 == 0]
    right = [(key, code) for at, (key, code) in enumerate(edges()) if at % 2]
    # n words have n - 7 8-grams; 70 % of 10 and 20 are whole numbers, of 23 they are not.
    for name, length, shared in [
        ("contained", 27, 21),
        ("not_contained", 27, 20),
        ("part", 17 + 7, 12 + 7),
        ("all", 40, 40),
        ("odd", 30, 24),
        ("odd_below", 30, 23),
    ]:
        code = words((0, length)).replace("t", f"{name}_")
        inside = words((0, shared)).replace("t", f"{name}_")
        around = words((0, 300)).replace("t", f"{name}_around_")
        left.append((f"made-{name}", code))
        right.append((f"made-{name}", f"{around} {inside} {around}"))
        right.append((f"made-{name}-again", f"{inside} {around}"))
    repeated = words((0, 10)).replace("t", "again_")
    left.append(("made-repeated", f"{repeated} " * 4))
    right.append(("made-repeated", f"{repeated} " * 3 + words((0, 300)).replace("t", "x_")))
    return left, right


def write(rows: list, names: list, file: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet

    columns = [list(column) for column in zip(*rows, strict=True)]
    schema = pa.schema([(name, pa.string()) for name in names])
    pyarrow.parquet.write_table(
        pa.table(dict(zip(names, columns, strict=True)), schema=schema), file
    )
    return file


class Result:
    """A run and its ports."""

    def __init__(self, args, work: Path, name: str, text: str, *flags: str) -> None:
        folder = work / name
        folder.mkdir()
        flow = folder / "flow.yaml"
        flow.write_text(text)
        done: Run = run(args.galeras, flow, folder / "cache", *flags)
        self.wall, self.seconds = done.wall, done.steps["unique"]["seconds"]
        self.digests = {port: done.digests["unique", port] for port in PORTS}
        self.folder = folder / "cache-out"

    def rows(self, port: str) -> list:
        if port == "summary":
            with (self.folder / "summary.csv").open(newline="") as file:
                return list(csv.DictReader(file))
        import pyarrow.parquet

        return pyarrow.parquet.read_table(self.folder / f"{port}.parquet").to_pylist()


def flow(rows: Path, corpus: Path, against: str, more: str) -> str:
    paths = {"rows": json.dumps(str(rows)), "corpus": json.dumps(str(corpus))}
    return WORKFLOW.format(**paths, against=against, more=more)


def check(name: str, result: Result, rows: list, found: dict, args, work, verdict) -> None:
    """Every port against the brute force, and against a `dedup` of the rest."""
    rejects = {row["id"]: row for row in result.rows("rejects") if row["rule"] == "near"}
    wanted = {rows[at][0]: value for at, value in found.items()}
    verdict.check(
        rejects.keys() == wanted.keys(),
        f"{name}: near {some(rejects.keys() ^ wanted.keys())} differ",
    )
    wrong = []
    for key, (near_to, source, (_, *measures)) in wanted.items():
        row = rejects.get(key, {})
        said = [row.get(c) for c in ("jaccard", "multiset_jaccard", *SHARES)]
        named = (row.get("near_to"), row.get("near_to_source", source))
        if (named, said, row.get("duplicate_of")) != ((near_to, source), measures, None):
            wrong.append((key, (near_to, source), named, measures, said))
    verdict.check(not wrong, f"{name}: other nearest rows or measures {some(wrong)}")
    rest = [row for row in rows if row[0] not in wanted]
    file = write(rest, ["id", "code"], work / f"{name}-rest.parquet")
    alone = Result(args, work, f"{name}-alone", ALONE.format(rows=json.dumps(str(file))))
    for port in ("out", "clusters"):
        same = result.digests[port] == alone.digests[port]
        verdict.check(same, f"{name}: {port} is not that of a dedup of the rest")
    others = [r for r in result.rows("rejects") if r["rule"] != "near"]
    columns = ["id", "code", "rule", "reason", "duplicate_of", "jaccard", "multiset_jaccard"]
    ours, theirs = (
        [[row[c] for c in columns] for row in side] for side in (others, alone.rows("rejects"))
    )
    verdict.check(ours == theirs, f"{name}: duplicates are not those of a dedup of the rest")
    [summary], [before] = result.rows("summary"), alone.rows("summary")
    similar = sum(measures[0] for _, _, measures in wanted.values())
    counts = {
        "near": len(wanted),
        "near_similar": similar,
        "rows": len(rows),
        "kept": int(before["kept"]),
    }
    said = {key: int(summary[key]) for key in counts}
    verdict.check(said == counts, f"{name}: summary has {said}, not {counts}")
    print(
        f"{name}: {len(rejects)} near rows recomputed ({similar} similar, the others contained), "
        f"{len(others)} duplicates and {len(result.rows('out'))} kept rows as of the rest alone; "
        f"{result.seconds:.2f} s",
        flush=True,
    )


def main() -> int:
    parser = arguments(__doc__)
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--methods", type=Path, required=True, help="Parquet with id and code")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=7, help="of the samples and the shuffle")
    parser.add_argument("--venv", type=Path, default=base / "galeras-bench" / "venv-dedup-check")
    args: argparse.Namespace = parser.parse_args()
    in_venv(*pinned(PINS), folder=args.venv)
    work, verdict = work_folder(args), Verdict()

    own = {key for key, _ in edges()}
    drawn = [(key, code) for key, code, _ in sample(args.methods, 2 * args.rows, args.seed)]
    drawn = [row for row in drawn if row[0] not in own]
    random.Random(args.seed).shuffle(drawn)
    more = made()
    rows = sorted(drawn[: args.rows] + more[0])
    corpus = [(key, code, f"set {at % 3}") for at, (key, code) in enumerate(drawn[args.rows :])]
    corpus = sorted(corpus + [(*row, "made") for row in more[1]])
    files = (
        write(rows, ["id", "code"], work / "rows.parquet"),
        write(corpus, ["task", "text", "source"], work / "corpus.parquet"),
    )
    started = time.perf_counter()
    numbers: dict = {}
    left, right = (texts([row[1] for row in side], numbers) for side in (rows, corpus))
    pairs = near_pairs(left, right)
    found = nearest(left, right, [(row[0], row[2]) for row in corpus], pairs)
    print(
        f"{len(rows)} rows against {len(corpus)}; brute force: {len(pairs)} near pairs of "
        f"{len(found)} rows; {time.perf_counter() - started:.1f} s",
        flush=True,
    )
    first = Result(args, work, "plain", flow(*files, "corpus", CORPUS))
    check("against", first, rows, found, args, work, verdict)

    itself = near_pairs(left, left)
    names = [(row[0], None) for row in rows]
    others = nearest(left, left, names, ((a, b) for a, b in itself if a != b))
    result = Result(args, work, "other", flow(*files, "rows", "against_ids: other"))
    check("other", result, rows, others, args, work, verdict)
    # The rows under the ids of others: a few are near to what has their id.
    turned = [
        (key, code, "x") for (key, _), (_, code) in zip(rows, rows[1:] + rows[:1], strict=True)
    ]
    file = write(turned, ["task", "text", "source"], work / "turned.parquet")
    moved = left[1:] + left[:1]
    same = ((a, a) for a in range(len(left)) if (a, (a + 1) % len(left)) in itself)
    same = nearest(left, moved, [(row[0], "x") for row in rows], same)
    result = Result(
        args, work, "same", flow(files[0], file, "corpus", f"{CORPUS}, against_ids: same")
    )
    check("same", result, rows, same, args, work, verdict)

    shuffled = [list(rows), list(corpus)]
    for side in shuffled:
        random.Random(args.seed).shuffle(side)
    turned = (
        write(shuffled[0], ["id", "code"], work / "rows-turned.parquet"),
        write(shuffled[1], ["task", "text", "source"], work / "corpus-turned.parquet"),
    )
    variants = [(f"--jobs {n}", files, ["--jobs", str(n)]) for n in (1, 2, 4)]
    variants += [(f"--memory {m}", files, ["--memory", m]) for m in ("16MB", "64MB", "1GB")]
    variants.append(("rows shuffled", turned, []))
    variants.append(
        ("rows shuffled, --jobs 4 --memory 16MB", turned, ["--jobs", "4", "--memory", "16MB"])
    )
    lines = [["plain", f"{first.wall:.2f}", f"{first.seconds:.2f}", ""]]
    for at, (name, paths, flags) in enumerate(variants):
        result = Result(args, work, f"variant-{at}", flow(*paths, "corpus", CORPUS), *flags)
        same_digests = verdict.check(result.digests == first.digests, f"{name}: other digests")
        said = "equal" if same_digests else "DIFFER"
        lines.append([name, f"{result.wall:.2f}", f"{result.seconds:.2f}", said])
    table(["run", "wall s", "step s", "digests"], lines)
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
