"""A benchmark against a corpus five times its size.

What it shows: seconds and peak memory of `dedup` on ROWS methods, alone and with OTHERS methods
at its input `against`, under `--memory 1GiB`. Both tables are of real methods. Where there are not
enough, they come again with their identifiers renamed by a seed, as other projects would name
them: half of the names of a round get an ending of that round. One row in 20 of `against` is a
row of the input, as it is, within a file, or with a line more, so that there is something to find.

How to run it: `python3 benches/dedup_against.py --methods FILE.parquet (columns id, code)
[--rows 200000] [--others 1000000] [--memory 1GiB] [--repeat 3] [--at-most 4] [--jobs N]
[--data FOLDER] [--venv FOLDER] [--galeras PATH]`. `--data` keeps the made tables, to be used
again.

What it prints: the median wall, step and processor seconds and the peak memory of each, the
ratios, and how many rows were near. Exit code 1 if the step with `against` takes more than
`--at-most` times that without.
"""

import builtins
import hashlib
import json
import keyword
import os
import re
import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from dedup.measure import measured  # noqa: E402
from harness import Verdict, arguments, command, in_venv, parse_events, pinned, table, work_folder  # noqa: E402  # noqa: E402

PINS = {"pyarrow": "26.0.1"}
TWENTY = 20
NAME = re.compile(r"(?<![\w\"'])[A-Za-z_][A-Za-z_0-9]{2,}")
KEPT = {*keyword.kwlist, *dir(builtins), "self", "cls", "args", "kwargs"}
HEAD = """\
galeras: 1
name: against-bench
steps:
  rows:   {{ op: read, with: {{ path: {rows}, key: [id] }} }}
"""
ALONE = (
    HEAD
    + """\
  unique: {{ op: dedup, from: rows, with: {{ column: code }} }}
outputs:
  summary: {{ from: unique.summary, path: summary.json }}
"""
)
AGAINST = (
    HEAD
    + """\
  corpus: {{ op: read, with: {{ path: {corpus}, key: [id] }} }}
  unique: {{ op: dedup, from: {{ input: rows, against: corpus }}, with: {{ column: code }} }}
outputs:
  summary: {{ from: unique.summary, path: summary.json }}
"""
)


def renamed(text: str, turn: int, endings: dict) -> str:
    """The text with half of its names as in round `turn`; round 0 changes nothing."""
    if turn == 0:
        return text

    def ending(match: re.Match) -> str:
        name = match.group(0)
        if name not in endings:
            hashed = hashlib.md5(f"{turn}/{name}".encode()).hexdigest()
            renames = name not in KEPT and int(hashed[0], 16) % 2 == 0
            endings[name] = f"{name}_{hashed[1:4]}" if renames else name
        return endings[name]

    return NAME.sub(ending, text)


def copied(text: str, at: int) -> str:
    """A text that is near to this one."""
    if at % 3 == 0:
        return text
    if at % 3 == 1:
        before = "import something_else, more\n" * 40
        return f"{before}\n{text}\n\ndef after():\n    pass\n"
    return f"{text}\n    changed_{at} = {at}"


def methods(texts: list, first: int, count: int):
    """Texts from number `first` on: round after round of all of them."""
    endings: dict = {}
    for number in range(first, first + count):
        turn, at = divmod(number, len(texts))
        if at == 0 or number == first:
            endings = {}
        yield renamed(texts[at], turn, endings)


def make(file: Path, rows: int, others: int, folder: Path) -> tuple:
    """The two tables, made once."""
    import pyarrow as pa
    import pyarrow.parquet

    names = [folder / f"rows-{rows}.parquet", folder / f"corpus-{rows}-{others}.parquet"]
    if all(name.exists() for name in names):
        return tuple(names)
    source = pyarrow.parquet.read_table(file, columns=["id", "code"]).to_pydict()
    order = sorted(range(len(source["id"])), key=lambda at: source["id"][at])
    texts = [source["code"][at] for at in order]
    own = list(methods(texts, 0, rows))

    def write(name: Path, codes, salt: str) -> None:
        schema = pa.schema([("id", pa.string()), ("code", pa.string())])
        part = name.with_suffix(".part")
        with pyarrow.parquet.ParquetWriter(part, schema, compression="zstd") as writer:
            batch: list = []
            for at, code in enumerate(codes):
                key = hashlib.md5(f"{salt}{at}".encode()).hexdigest()
                batch.append({"id": key, "code": code})
                if len(batch) == 50_000:
                    writer.write_table(pa.Table.from_pylist(batch, schema=schema))
                    batch = []
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
        part.rename(name)

    def corpus():
        for at, code in enumerate(methods(texts, rows, others)):
            chosen = own[at * 7919 % len(own)]
            yield copied(chosen, at // TWENTY) if at % TWENTY == 0 else code

    write(names[0], own, "row")
    write(names[1], corpus(), "other")
    return tuple(names)


def medians(args, name: str, text: str, work: Path) -> dict:
    """The run with the median step of several on an empty store."""
    flow = work / f"{name}.yaml"
    flow.write_text(text)
    cache, out = work / "cache", work / "cache-out"
    more = ["--memory", args.memory, *(["--jobs", str(args.jobs)] if args.jobs else [])]
    runs = []
    for _ in range(args.repeat):
        for folder in (cache, out):
            shutil.rmtree(folder, ignore_errors=True)
        found, printed = measured(command(args.galeras, flow, cache, *more), work, cwd=work)
        events = parse_events(printed)
        if found["code"] or not events or events[-1].get("event") != "finished":
            sys.exit(f"galeras run {flow} ended with {found['code']}\n{printed[-2000:]}")
        steps = {step["step"]: step for step in events[-1]["steps"]}
        found["step"] = steps["unique"]["seconds"]
        found["summary"] = json.loads((out / "summary.json").read_text())[0]
        runs.append(found)
        print(f"  {name}: step {found['step']:.2f} s, wall {found['wall']:.2f} s", flush=True)
    return sorted(runs, key=lambda run: run["step"])[(len(runs) - 1) // 2]


def main() -> int:
    parser = arguments(__doc__)
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--methods", type=Path, required=True, help="Parquet with id and code")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--others", type=int, default=1_000_000)
    parser.add_argument("--memory", default="1GiB", help="of galeras run")
    parser.add_argument("--jobs", type=int, help="of galeras run")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--at-most", type=float, default=4, help="times the step alone")
    parser.add_argument("--data", type=Path, help="keep the made tables here")
    parser.add_argument("--venv", type=Path, default=base / "galeras-bench" / "venv-dedup-check")
    args = parser.parse_args()
    in_venv(*pinned(PINS), folder=args.venv)
    work, verdict = work_folder(args), Verdict()
    data = args.data or work
    data.mkdir(parents=True, exist_ok=True)
    rows, corpus = make(args.methods, args.rows, args.others, data.resolve())
    paths = {"rows": json.dumps(str(rows)), "corpus": json.dumps(str(corpus))}
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}, --memory {args.memory}", flush=True)
    alone = medians(args, "alone", ALONE.format(**paths), work)
    both = medians(args, "against", AGAINST.format(**paths), work)

    lines = []
    for name, found in (("alone", alone), ("against", both)):
        seconds = [f"{found[what]:.2f}" for what in ("step", "wall", "cpu")]
        lines.append([name, *seconds, f"{found['rss'] / 1e6:.0f}"])
    ratios = [f"{both[what] / alone[what]:.2f}" for what in ("step", "wall", "cpu", "rss")]
    table(["run", "step s", "wall s", "cpu s", "peak MB"], [*lines, ["ratio", *ratios]])
    summary = both["summary"]
    print(
        f"{summary['rows']} rows against {summary['against_rows']}: {summary['near']} near, "
        f"{summary['near_similar']} of them similar; {summary['duplicates']} duplicates"
    )
    ratio = both["step"] / alone["step"]
    verdict.check(ratio <= args.at_most, f"{ratio:.2f} times the step alone, not {args.at_most}")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
