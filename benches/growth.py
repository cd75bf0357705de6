"""How time, memory and disk grow with the table: from 100 thousand to 10 million methods.

What it shows: tables of distinct methods go through `read -> ast -> validate -> dedup -> sample ->
cut -> score`, each size into an empty store, under `--memory`. The methods are those of the carried
corpus; for each row, more than half of the names are replaced by others of the corpus, drawn by a
seed, so that two variants of a method are hardly ever near duplicates (one row in twenty stays near
to another, so that `dedup` has something to find).

How to run it: `python3 benches/growth.py [--sizes 100000,1000000,10000000] [--memory 1GiB]
[--jobs N] [--same] [--data FOLDER] [--galeras PATH]`. The data are made once in `--data` (about
0.4 GB per million rows) and taken from there the next time. `--same` runs the first size with
`--memory 256MB` and `8GiB` and with one, two and three threads, and compares the digests. Needs
pyarrow, which is installed in a virtual environment.

What it prints: per size and step the seconds, then peak resident memory of the process, bytes of
the store, and for each step the exponent of time between the smallest and the largest size. Exit
code 1 if an exponent is above 1.1, the memory above 1.5 times `--memory` and 300 MB, or if digests
differ.
"""

import hashlib
import math
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import (  # noqa: E402
    Run,
    Verdict,
    arguments,
    command,
    environment,
    in_venv,
    parse_events,
    pinned,
    stdlib_methods,
    table,
    work_folder,
)

EXPONENT, SLACK = 1.1, 300e6
SEED = 20220101
CHUNK = 20_000
WORD = re.compile(r"(?<![\w'\"])([A-Za-z_]\w{2,})(?![\w'\"])")
KEPT = frozenset(
    "and assert async await break class continue def del elif else except finally for from global "
    "import lambda nonlocal not pass raise return try while with yield None True False self cls "
    "str int len list dict set super print range isinstance".split()
)
WORKFLOW = """\
galeras: 1
name: growth
steps:
  methods: {{ op: read, with: {{ path: {data} }} }}
  features: {{ op: ast, from: methods }}
  valid:
    op: validate
    from: features
    with:
      rules:
        - {{ name: parses, check: "parses(code)" }}
        - {{ name: has a body, check: "n_words > 8" }}
  distinct: {{ op: dedup, from: valid, with: {{ column: code }} }}
  drawn: {{ op: sample, from: distinct, with: {{ fraction: 0.5, seed: 1 }} }}
  cut: {{ op: cut, from: drawn, with: {{ seed: 2 }} }}
  scored:
    op: score
    from: cut
    with: {{ reference: code, prediction: random_cut, metrics: [bleu, levenshtein, similarity] }}
"""


def rename(text: str, words: list, row: int) -> str:
    """The text with more than half of its names replaced, the same name by the same."""
    draw = random.Random(SEED * 1_000_003 + row)
    names = {}

    def other(match: re.Match) -> str:
        name = match.group(1)
        if name in KEPT:
            return name
        if name not in names:
            names[name] = draw.choice(words) if draw.random() < 0.6 else name
        return names[name]

    return WORD.sub(other, text)


def chunk(args: tuple) -> str:
    """Writes the rows from `start` on as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, start, end, texts, words = args
    if path.exists():
        return str(path)
    ids, codes = [], []
    for row in range(start, end):
        # One row in twenty is the variant of the row before it, under another name.
        source = row - 1 if row % 20 == 19 else row
        text = rename(texts[source % len(texts)], words, source)
        if source != row:
            text = re.sub(r"\bdef\s+(\w+)", rf"def \1_{row}", text, count=1)
        ids.append(hashlib.md5(str(row).encode()).hexdigest())
        codes.append(text)
    part = path.with_suffix(".part")
    pq.write_table(pa.table({"id": ids, "code": codes}), part, compression="zstd")
    part.rename(path)
    return str(path)


def data(folder: Path, rows: int, texts: list) -> Path:
    """The table of so many rows: one file, in which the rows of smaller tables come first."""
    import pyarrow.parquet as pq

    whole = folder / f"{rows}.parquet"
    if whole.exists():
        return whole
    folder.mkdir(parents=True, exist_ok=True)
    words = sorted({w for text in texts for w in WORD.findall(text)} - KEPT)
    (folder / "chunks").mkdir(exist_ok=True)
    starts = range(0, rows, CHUNK)
    work = [
        (folder / "chunks" / f"{s:09}.parquet", s, min(s + CHUNK, rows), texts, words)
        for s in starts
    ]
    with ProcessPoolExecutor() as pool:
        files = list(pool.map(chunk, work))
    part, writer = whole.with_suffix(".part"), None
    for file in files:
        rows_of_file = pq.read_table(file)
        writer = writer or pq.ParquetWriter(part, rows_of_file.schema, compression="zstd")
        writer.write_table(rows_of_file)
    writer.close()
    part.rename(whole)
    return whole


def measured(galeras: str, workflow: Path, cache: Path, memory: str, jobs: int | None) -> tuple:
    """A run, with the peak resident memory of its process in bytes."""
    more = ["--memory", memory, *(["--jobs", str(jobs)] if jobs else [])]
    log, errors = cache.parent / "events", cache.parent / "errors"
    started = time.perf_counter()
    with log.open("w") as out, errors.open("w") as err:
        child = subprocess.Popen(
            command(galeras, workflow, cache, *more), env=environment(), stdout=out, stderr=err
        )
        _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - started
    code = os.waitstatus_to_exitcode(status)
    if code:
        sys.exit(f"the run ended with {code}\n{errors.read_text()}\n{log.read_text()[-3000:]}")
    return Run(code, wall, parse_events(log.read_text())), usage.ru_maxrss * 1024


def stored(cache: Path) -> int:
    return sum(f.stat().st_size for f in cache.rglob("*") if f.is_file())


def size_in_bytes(text: str) -> float:
    units = {"MB": 1e6, "GB": 1e9, "MiB": 2**20, "GiB": 2**30}
    unit = next(u for u in sorted(units, key=len, reverse=True) if text.endswith(u))
    return float(text.removesuffix(unit)) * units[unit]


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--sizes", default="100000,1000000,10000000")
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--same", action="store_true")
    parser.add_argument("--data", type=Path)
    args = parser.parse_args()
    in_venv(*pinned({"pyarrow": "26.0.1"}))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    work, verdict = work_folder(args), Verdict()
    folder = (args.data or work / "data").resolve()
    texts = stdlib_methods(args.galeras, work)
    sizes = [int(size) for size in args.sizes.split(",")]
    seconds, rows = {}, []
    for size in sizes:
        workflow = work / f"{size}.yaml"
        workflow.write_text(WORKFLOW.format(data=data(folder, size, texts)))
        cache = work / "cache"
        run, peak = measured(args.galeras, workflow, cache, args.memory, args.jobs)
        seconds[size] = {name: step["seconds"] for name, step in run.steps.items()}
        seconds[size]["whole"] = run.wall
        verdict.check(
            peak <= 1.5 * size_in_bytes(args.memory) + SLACK,
            f"{size} rows: {peak / 1e6:.0f} MB resident",
        )
        kept = run.steps["distinct"]["rows"]
        times = [f"{seconds[size][name]:.1f}" for name in seconds[size]]
        rows.append([f"{size:,}", *times, f"{peak / 1e6:.0f}", f"{stored(cache) / 1e6:.0f}", kept])
        print(f"{size:,} rows: {run.wall:.1f} s, {peak / 1e6:.0f} MB resident", flush=True)
        if args.same and size == sizes[0]:
            same(args, workflow, work, run, verdict)
        shutil.rmtree(cache)
    names = list(seconds[sizes[0]])
    print()
    table(["rows", *(f"{name} s" for name in names), "peak MB", "store MB", "kept"], rows)
    if len(sizes) > 1:
        print()
        first, last = sizes[0], sizes[-1]
        for name in names:
            ratio = seconds[last][name] / max(seconds[first][name], 1e-3)
            exponent = math.log(ratio) / math.log(last / first)
            print(f"exponent of {name}: {exponent:.2f}")
            # What takes no time at the smallest size has no exponent to speak of.
            if seconds[first][name] >= 0.1:
                verdict.check(exponent <= EXPONENT, f"{name}: exponent {exponent:.2f}")
    return verdict.end()


def same(args, workflow: Path, work: Path, first: Run, verdict: Verdict) -> None:
    """The digests with other memory and other numbers of threads."""
    settings = [("256MB", None), ("8GiB", None), *((args.memory, jobs) for jobs in (1, 2, 3))]
    for memory, jobs in settings:
        cache = work / "cache-same"
        run, peak = measured(args.galeras, workflow, cache, memory, jobs)
        name = f"--memory {memory} --jobs {jobs or 'all'}"
        print(f"{name}: {run.wall:.1f} s, {peak / 1e6:.0f} MB resident", flush=True)
        verdict.check(run.digests == first.digests, f"{name}: other digests")
        shutil.rmtree(cache)


if __name__ == "__main__":
    sys.exit(main())
