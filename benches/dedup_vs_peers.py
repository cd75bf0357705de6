"""`dedup` against dpu_utils and rensa, on real methods, in one go on one machine.

What it shows: the near-duplicates (set Jaccard >= 0.8 and multiset Jaccard >= 0.7 of the word
tokens, at least 20 tokens, connected components) of the same rows, found by
- dpu_utils' DuplicateDetector (pinned; exact, Python), fed with the same tokens;
- rensa's R-MinHash and LSH (pinned; Rust with a Python API), its candidates verified in Python;
- `galeras run` of `read -> dedup` with `method: exact` and with `method: minhash`.
The components of dpu_utils must be those of `exact`; every row where they differ is judged by
recomputing the similarities. The recall of rensa and of `minhash` is against `exact`.

How to run it: `python3 benches/dedup_vs_peers.py --methods FILE.parquet (columns id, code)
[--rows 25000,50000,100000,200000] [--engines dpu,rensa,exact,minhash] [--repeat 3]
[--dpu-limit SECONDS] [--memory-limit GB] [--bands 16] [--peer-cache FOLDER] [--venv FOLDER]
[--jobs N] [--faster-than-dpu X] [--faster-than-rensa X] [--galeras PATH]`. The rows of each
size are those with the smallest MD5 of the id, so a smaller sample is part of a larger one.
Every measured process is one of its own. dpu_utils runs once per size and is stopped at
`--dpu-limit`; the others run `--repeat` times and the median counts. With `--peer-cache` the
results and times of dpu_utils and rensa are stored and reused; the output says so, and judges
such a time by the smaller of wall and processor seconds, as the machine may have been busy.

What it prints: per size and engine the wall seconds of the whole process, of the work after
the rows are in memory, of the work without tokenising (for `galeras`: of the step `dedup`),
processor seconds, peak memory (of the whole process), flagged rows, components; the ratios;
the recalls; per engine the exponent of time over rows. A time that was cut off is printed as
`> limit`, and ratios with it as `> ratio`; the fitted exponent extrapolates it, and says so.
Exit code 1 if the components of dpu_utils and `exact` differ, `exact` differs from the
recomputation, or a demanded ratio is missed.
"""

import argparse
import gc
import hashlib
import itertools
import math
import os
import pickle
import statistics
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from dedup.agreement import Documents, differences, flagged, of_row, recall  # noqa: E402
from dedup.by_galeras import by_galeras  # noqa: E402
from dedup.peers import PERMUTATIONS, PINS, by_dpu, by_rensa, peer  # noqa: E402
from harness import Verdict, arguments, in_venv, pinned, table, work_folder  # noqa: E402

PEERS, OURS = ["dpu", "rensa"], ["exact", "minhash"]


def exponent(points: list) -> tuple:
    """The slope and the factor of log time over log rows."""
    if len(points) < 2:
        return None
    xs = [math.log(rows) for rows, _ in points]
    ys = [math.log(max(seconds, 1e-6)) for _, seconds in points]
    x, y = statistics.fmean(xs), statistics.fmean(ys)
    slope = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum(
        (a - x) ** 2 for a in xs
    )
    return slope, math.exp(y - slope * x)


def judged(result: dict, which: str) -> float:
    """Seconds; of a stored time the processor's if they are fewer, as it may have waited."""
    seconds = result[which]
    if result["cached"] and result["wall"] > result["cpu"]:
        seconds *= result["cpu"] / result["wall"]
    return seconds


def subsample(file: Path, rows: int, target: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet

    columns = pyarrow.parquet.read_table(file, columns=["id", "code"])
    ids = columns["id"].to_pylist()
    by_hash = sorted(range(len(ids)), key=lambda at: hashlib.md5(ids[at].encode()).digest())
    chosen = sorted(by_hash[:rows], key=lambda at: ids[at])
    pyarrow.parquet.write_table(columns.take(pa.array(chosen, pa.int64())), target)
    return len(chosen)


def main() -> int:
    parser = arguments(__doc__)
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))

    def listed(kind):
        return lambda text: [kind(part) for part in text.split(",") if part]

    parser.add_argument("--methods", type=Path, required=True, help="Parquet with id and code")
    parser.add_argument("--rows", type=listed(int), default=[25_000, 50_000, 100_000, 200_000])
    parser.add_argument("--engines", type=listed(str), default=PEERS + OURS)
    parser.add_argument("--repeat", type=int, default=3, help="runs of all but dpu_utils")
    parser.add_argument("--dpu-limit", type=float, default=7200, help="seconds for one size")
    parser.add_argument("--memory-limit", type=float, default=0, help="GB of each peer; 0: none")
    parser.add_argument("--bands", type=int, default=16, help="of rensa's 128 permutations")
    parser.add_argument(
        "--largest",
        type=int,
        default=3000,
        help="distinct texts of a component whose pairs are all recomputed",
    )
    parser.add_argument("--jobs", type=int, help="of galeras run")
    parser.add_argument("--venv", type=Path, default=base / "galeras-bench" / "venv-dedup")
    parser.add_argument("--peer-cache", type=Path, help="store and reuse the peers' results")
    parser.add_argument("--faster-than-dpu", type=float, help="demanded: wall / exact's wall")
    parser.add_argument("--faster-than-rensa", type=float, help="demanded: wall / minhash's wall")
    parser.add_argument("--worker", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--worker-out", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        gc.disable()  # a favour to both peers: there is nothing to collect
        made = by_dpu(args.methods) if args.worker == "dpu" else by_rensa(args.methods, args.bands)
        data = pickle.dumps(made)
        behind = time.perf_counter() - made["ended"]
        args.worker_out.write_bytes(pickle.dumps((behind, data)))
        os._exit(0)  # freeing the objects would take time too
    in_venv(*pinned(PINS), folder=args.venv)
    work, verdict = work_folder(args), Verdict()
    print(
        f"{args.methods}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        + ", ".join(f"{name} {version}" for name, version in PINS.items())
        + f"; rensa: {PERMUTATIONS} permutations, {args.bands} bands",
        flush=True,
    )

    results: dict = {}
    for rows in sorted(args.rows):
        file = work / f"rows-{rows}.parquet"
        count = subsample(args.methods, rows, file)
        if count < rows:
            print(f"only {count} rows in {args.methods}: no sample of {rows}")
            continue
        for name in args.engines:
            load = os.getloadavg()[0]
            if name in PEERS:
                result = peer(args, name, file, work)
            else:
                result = by_galeras(args, name, file, work)
            result.setdefault("load", (load, os.getloadavg()[0]))
            results[rows, name] = result
            print(
                f"  {rows} {name}: {result['wall']:.2f} s"
                + (f" (CACHED, of {result['when']})" if result["cached"] else "")
                + (" STOPPED" if result["stopped"] else "")
                + "".join(f", {k} {v:.2f}" for k, v in result.get("stages", {}).items())
                + "".join(f", {k} {v}" for k, v in result.get("counts", {}).items())
                + "".join(f", step {k} {v:.2f}" for k, v in result.get("steps", {}).items()),
                flush=True,
            )
    done = {key: r for key, r in results.items() if not r["code"]}

    print()
    lines = []
    for (rows, name), r in results.items():
        label = name + (" (CACHED)" if r["cached"] else "")
        load = f"{max(r['load']):.1f}"
        if r["code"]:
            why = f"> {r['wall']:.1f}" if r["stopped"] else f"FAILED ({r['code']})"
            lines.append(
                [
                    rows,
                    label,
                    why,
                    "-",
                    "-",
                    f"{r['cpu']:.1f}",
                    f"{r['rss'] / 1e6:.0f}",
                    "-",
                    "-",
                    load,
                ]
            )
            continue
        lines.append(
            [
                rows,
                label,
                f"{r['wall']:.2f}",
                f"{r['seconds']:.2f}",
                f"{r['other']:.2f}",
                f"{r['cpu']:.2f}",
                f"{r['rss'] / 1e6:.0f}",
                flagged(r["components"]),
                len(r["components"]),
                load,
            ]
        )
    table(
        [
            "rows",
            "engine",
            "wall s",
            "in memory s",
            "no tokens / step s",
            "cpu s",
            "peak MB",
            "flagged",
            "components",
            "load",
        ],
        lines,
    )
    print("in memory s: after the rows are read; no tokens: without tokenising; step: of `dedup`")

    print("\nscaling (seconds = factor * rows ** exponent)")
    fits, lines = {}, []
    for name in args.engines:
        row = [name]
        for which in ("wall", "seconds" if name in PEERS else "other"):
            points = [(rows, judged(r, which)) for (rows, n), r in done.items() if n == name]
            fits[name, which] = fit = exponent(points)
            row.append(f"{fit[0]:.2f}" if fit else "-")
        points = [(rows, r["rss"]) for (rows, n), r in done.items() if n == name]
        fit = exponent(points)
        row += [f"{fit[0]:.2f}" if fit else "-", len(points)]
        lines.append(row)
    table(["engine", "wall", "in memory / step", "peak memory", "sizes"], lines)

    print("\nratios of wall seconds")
    lines = []
    for rows in sorted({rows for rows, _ in results}):
        for theirs, ours in itertools.product(PEERS, OURS):
            r, o = results.get((rows, theirs)), done.get((rows, ours))
            if not r or not o or (r["code"] and not r["stopped"]):
                continue
            ratio = judged(r, "wall") / o["wall"]
            work_ratio = "-" if r["code"] else f"{judged(r, 'seconds') / max(o['other'], 1e-6):.1f}"
            note = "from a CACHED time" if r["cached"] else ""
            sign = ""
            if r["stopped"]:
                sign = "> "
                fit = fits.get((theirs, "wall"))
                if fit:
                    note += (
                        f"; extrapolated from the smaller sizes: {theirs} "
                        f"{fit[1] * rows ** fit[0]:.0f} s"
                    )
            memory = "-" if r["code"] else f"{r['rss'] / o['rss']:.1f}"
            lines.append(
                [
                    rows,
                    f"{theirs} / {ours}",
                    f"{sign}{ratio:.1f}",
                    work_ratio,
                    memory,
                    note.strip("; "),
                ]
            )
            wanted = args.faster_than_dpu if theirs == "dpu" else args.faster_than_rensa
            if (
                wanted
                and rows == max(args.rows)
                and (theirs, ours) in (("dpu", "exact"), ("rensa", "minhash"))
            ):
                verdict.check(ratio >= wanted, f"{theirs} / {ours}: {ratio:.1f}, not {wanted}")
    table(["rows", "ratio", "wall", "in memory / step", "peak memory", ""], lines)

    for rows in sorted({rows for rows, _ in done}):
        exact, dpu = done.get((rows, "exact")), done.get((rows, "dpu"))
        wanted = exact or dpu
        if not wanted:
            continue
        print(
            f"\nagreement on {rows} rows, against {'exact' if exact else 'dpu'}: "
            f"{len(wanted['components'])} components, largest "
            f"{max(map(len, wanted['components']), default=0)} rows"
        )
        file = work / f"rows-{rows}.parquet"
        documents = Documents(file)
        print(f"  rows whose words are others by Python's \\w: {len(documents.other_words())}")
        if exact:
            verdict.check(
                exact["rejects"] == flagged(exact["components"]),
                f"{rows}: {exact['rejects']} rejects, but the clusters flag "
                f"{flagged(exact['components'])}",
            )
            if dpu:
                differences("dpu", dpu["components"], exact["components"], file, verdict)
        for name in ("dpu", "rensa", "minhash"):
            r = done.get((rows, name))
            if not r or r is wanted:
                continue
            print(
                f"  {name}: "
                + ", ".join(
                    f"{what} {a} of {b} ({a / b if b else 1:.3%})"
                    for what, (a, b) in recall(r["components"], wanted["components"]).items()
                )
            )
            place = of_row(wanted["components"])
            wrong = sum(len({place.get(key, key) for key in c}) > 1 for c in r["components"])
            print(f"    joins rows that the reference does not: {wrong} components")
            if name == "minhash":
                verdict.check(not wrong, f"{rows}: minhash joins rows that exact does not")
            if "near" in r:
                found, of_all, left = documents.pair_recall(
                    wanted["components"], r["near"], args.largest
                )
                print(
                    f"    similar pairs among its candidates: {found} of {of_all} "
                    f"({found / of_all if of_all else 1:.3%})"
                    + (f"; {left} too large components left out" if left else "")
                )
    print()
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
