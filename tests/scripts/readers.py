"""pandas and DuckDB read every artifact, and agree with Galeras.

What it shows: after a run of the quickstart every blob of the store, including the parts of
row-precise reuse, is read by `pandas.read_parquet` and by DuckDB. Rows, columns and their
order, the order by key, the uniqueness of the key and a sample of values are compared with
the manifests and with `galeras show`. Table I is computed again from the testbed by DuckDB,
by pandas and in exact fractions, and compared with the stored table.

How to run it: `python3 tests/scripts/readers.py [--galeras PATH]`. pandas, pyarrow and duckdb
are installed from their registry into a virtual environment (see `harness.in_venv`).

What it prints: a line per artifact (rows, columns, bytes, what read it), the two Tables I
with their largest relative difference (limit 1e-12), and the violations. Exit code 1 if there
is one.
"""

import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import (  # noqa: E402
    QUICKSTART,
    Verdict,
    arguments,
    blob_path,
    environment,
    in_venv,
    manifests,
    port_blob,
    run,
    table,
    work_folder,
)

LIMIT = 1e-12
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


def plain(value):
    """A value of pandas or DuckDB as JSON would have it."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def check_port(verdict, duckdb, pandas, file: Path, port: dict, name: str) -> list:
    names = [c["name"] for c in port["columns"]]
    frame = pandas.read_parquet(file, dtype_backend="pyarrow")
    duck = duckdb.sql(f"SELECT * FROM read_parquet('{file}')")
    count = duckdb.sql(f"SELECT count(*) FROM read_parquet('{file}')").fetchall()[0][0]
    verdict.check(len(frame) == port["rows"], f"{name}: pandas reads {len(frame)} rows")
    verdict.check(count == port["rows"], f"{name}: DuckDB reads {count} rows")
    for reader, found in [("pandas", list(frame.columns)), ("DuckDB", duck.columns)]:
        found = [c for c in found if c in names or not c.startswith("__")]
        wanted = [c for c in names if c in found or not c.startswith("__")]
        verdict.check(found == wanted, f"{name}: {reader} finds columns {found}, not {wanted}")
    verdict.check(file.stat().st_size == port["bytes"], f"{name}: the file has another size")
    if port["key"] and len(frame):
        keys = list(frame[port["key"]].itertuples(index=False, name=None))
        verdict.check(len(set(keys)) == len(keys), f"{name}: keys are not unique")
        verdict.check(keys == sorted(keys), f"{name}: rows are not in key order")
    # Both readers, value by value, on a sample of rows.
    rows = duck.fetchall()
    for at in range(0, len(frame), max(1, len(frame) // 50)):
        one = {c: plain(v) for c, v in zip(duck.columns, rows[at], strict=True)}
        other = {c: plain(v) for c, v in frame.iloc[at].items()}
        other = {c: None if v is pandas.NA else v for c, v in other.items()}
        verdict.check(one == other, f"{name} row {at}: DuckDB {one}, pandas {other}")
    # The default backend as well.
    verdict.check(len(pandas.read_parquet(file)) == port["rows"], f"{name}: default pandas")
    return [name, port["rows"], len(names), port["bytes"], "pandas, DuckDB"]


def shown(args, cache: Path, work: Path, target: str, where: str) -> list:
    done = subprocess.run(
        [
            os.path.abspath(args.galeras),
            "show",
            str(QUICKSTART),
            target,
            "--cache",
            str(cache),
            "--format",
            "json",
            "--where",
            where,
        ],
        cwd=work,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def exact(values: list) -> tuple:
    """Mean and sample deviation, rounded once at the end."""
    numbers = [Fraction(v) for v in values]
    mean = sum(numbers) / len(numbers)
    variance = sum((v - mean) ** 2 for v in numbers) / (len(numbers) - 1)
    return float(mean), math.sqrt(variance)


def main() -> int:
    args = arguments(__doc__).parse_args()
    in_venv("pandas", "pyarrow", "duckdb")
    import duckdb
    import pandas

    work, verdict = work_folder(args), Verdict()
    cache = work / "cache"
    result = run(args.galeras, QUICKSTART, cache)
    steps = result.steps

    lines, named = [], set()
    for manifest in manifests(cache):
        for port in manifest["ports"]:
            name = f"{manifest['labels']['step']}.{port['port']}"
            named.add(port["blob"])
            file = blob_path(cache, port["blob"])
            lines.append(check_port(verdict, duckdb, pandas, file, port, name))
    for part in sorted(cache.glob("memo/*/*/*.json")):
        part = json.loads(part.read_text())
        if part["blob"] not in named:
            file = blob_path(cache, part["blob"])
            frame = pandas.read_parquet(file)
            count = duckdb.sql(f"SELECT count(*) FROM read_parquet('{file}')").fetchall()[0][0]
            verdict.check(len(frame) == count == part["rows"], f"part {part['blob'][:12]}: rows")
            duckdb.sql(f"SELECT * FROM read_parquet('{file}')").fetchall()
            named.add(part["blob"])
            lines.append(
                [
                    f"part {part['blob'][:12]}",
                    count,
                    len(frame.columns),
                    part["bytes"],
                    "pandas, DuckDB",
                ]
            )
    stored = {p.stem for p in cache.glob("blobs/*/*.parquet")}
    verdict.check(
        stored == named,
        f"blobs that nothing names: {sorted(stored - named)}; missing: {sorted(named - stored)}",
    )
    table(["artifact", "rows", "columns", "bytes", "read by"], lines)

    # `galeras show` and DuckDB tell the same of single rows.
    testbed = port_blob(cache, steps["testbed"]["key"])
    some = duckdb.sql(f"SELECT id FROM '{testbed}' ORDER BY md5(id) LIMIT 25").fetchall()
    ids = [row[0] for row in some]
    quoted = ", ".join(f"'{i}'" for i in ids)
    ours = {r["id"]: r for r in shown(args, cache, work, "testbed", f"id IN ({quoted})")}
    duck = duckdb.sql(f"SELECT * FROM '{testbed}' WHERE id IN ({quoted})")
    theirs = {}
    for row in duck.fetchall():
        record = {c: plain(v) for c, v in zip(duck.columns, row, strict=True)}
        theirs[record["id"]] = record
    for key in ids:
        one = {c: v for c, v in ours.get(key, {}).items() if v is not None}
        other = {c: v for c, v in theirs[key].items() if v is not None}
        verdict.check(one == other, f"row {key}: show {one}, DuckDB {other}")
    record = theirs[ids[0]]
    verdict.check(
        all(r["random_cut"] + r["cut_rest"] == r["code"] for r in theirs.values()),
        f"random_cut + cut_rest is not code, e.g. {record['id']}",
    )

    # Table I three times.
    stored = {
        r["column"]: r
        for r in pandas.read_parquet(port_blob(cache, steps["table_1"]["key"])).to_dict("records")
    }
    frame = pandas.read_parquet(testbed)
    rows, worst = [], 0.0
    for name in FEATURES:
        duck_mean, duck_std, n = duckdb.sql(
            f"SELECT avg({name}), stddev_samp({name}), count({name}) FROM '{testbed}'"
        ).fetchall()[0]
        values = {
            "DuckDB": (duck_mean, duck_std),
            "pandas": (float(frame[name].mean()), float(frame[name].std())),
            "exact": exact([int(v) for v in frame[name]]),
        }
        verdict.check(stored[name]["n"] == n, f"{name}: n is {stored[name]['n']}, not {n}")
        for reader, pair in values.items():
            for what, wanted in zip(("mean", "std"), pair, strict=True):
                found = stored[name][what]
                difference = abs(found - wanted) / (abs(wanted) or 1)
                worst = max(worst, difference)
                verdict.check(difference <= LIMIT, f"{name} {what}: {found}, {reader} {wanted}")
                if reader == "exact":
                    verdict.check(
                        difference <= 2**-52, f"{name} {what}: {found} is not {wanted} to an ulp"
                    )
        rows.append(
            [
                name,
                repr(stored[name]["mean"]),
                repr(stored[name]["std"]),
                repr(duck_mean),
                repr(duck_std),
            ]
        )
    print()
    table(["column", "mean", "std", "mean (DuckDB)", "std (DuckDB)"], rows)
    print(
        f"largest relative difference {worst:.1e}, limit {LIMIT:.0e}; pandas "
        f"{pandas.__version__}, duckdb {duckdb.__version__}"
    )
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
