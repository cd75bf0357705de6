"""Rows for `dedup`: real ones, and edges that are made.

Not a script of its own: `dedup_bruteforce.py` uses it.
"""

import hashlib
import sys
from pathlib import Path


def words(*ranges, extra=()) -> str:
    """Words t<n> of the half-open ranges, and `extra`, with the punctuation of code between."""
    found = [f"t{n}" for first, last in ranges for n in range(first, last)] + list(extra)
    return "".join(word + "(.,; +\n"[at % 7] for at, word in enumerate(found))


def edges() -> list:
    """Made rows `(id, code)` at the edges of the rules; each group has words of its own."""
    rows = []

    def group(name: str, *codes: str) -> None:
        for at, code in enumerate(codes):
            # Only names of the group, so that the groups do not meet.
            rows.append((f"edge-{name}-{at}", code.replace("t", f"{name.replace('-', '_')}_")))

    group("same", words((0, 20)), words((0, 20)))
    group("nineteen", words((0, 19)), words((0, 19)))
    group("repeated", words((0, 1)) * 20, words((0, 1)) * 20)
    group("repeated_nineteen", words((0, 1)) * 19, words((0, 1)) * 19)
    group("set_at", words((0, 20)), words((0, 25)))
    group("set_below", words((0, 24)), words((0, 31)))
    group("set_shifted", words((0, 24)), words((1, 25)))
    group("multiset_at", words((0, 21)), words((0, 21), extra=["t0"] * 9))
    group("multiset_below", words((0, 20)), words((0, 20), extra=["t0"] * 9))
    group("chain", words((0, 20)), words((0, 25)), words((4, 25)))
    group("long_chain", *[words((2 * at, 2 * at + 40)) for at in range(30)])
    group("star", *[words((0, 20), (100 + at, 101 + at)) for at in range(12)])
    group("order", words((0, 30)), "\n".join(f"t{n}" for n in reversed(range(30))))
    group("case", words((0, 20)), words((0, 20)).upper())
    # A run that begins with a digit or a foreign letter is no word; within one they count.
    group("digits", words((0, 20)), words((0, 20), extra=[f"{n}t{n}" for n in range(9)]))
    group("foreign", words((0, 20)), words((0, 20), extra=[f"\u00f1t{n}" for n in range(9)]))
    group(
        "foreign_only",
        " ".join(f"\u00f1{n}" for n in range(30)),
        " ".join(f"\u00f1{n}" for n in range(30)),
    )
    group(
        "foreign_inside",
        " ".join(f"t{n}\u00f1" for n in range(20)),
        " ".join(f"t{n}\u00f1" for n in range(20)),
    )
    group(
        "foreign_differs",
        " ".join(f"t{n}\u00f1" for n in range(20)),
        " ".join(f"t{n}\u00e9" for n in range(20)),
    )
    group(
        "composed",
        " ".join(f"t{n}\u00e9" for n in range(20)),
        " ".join(f"t{n}e\u0301" for n in range(20)),
    )
    group(
        "superscript",
        " ".join(f"t{n}\u00b2" for n in range(20)),
        " ".join(f"t{n}" for n in range(20)),
    )
    group(
        "vowel_sign",
        " ".join(f"t{n}\u0915\u093ex{n}" for n in range(20)),
        " ".join(f"t{n}\u0915 x{n}" for n in range(20)),
    )
    group(
        "circled", " ".join(f"t{n}\u24d0" for n in range(20)), " ".join(f"t{n}" for n in range(20))
    )
    group(
        "wide",
        " ".join(f"t{n}\U0001d4d0" for n in range(20)),
        " ".join(f"t{n}\U0001d4d1" for n in range(20)),
    )
    group(
        "astral_breaks",
        " ".join(f"t{n}\U0001f600" for n in range(20)),
        " ".join(f"t{n}" for n in range(20)),
    )
    nul = [f"nul{n}" for n in range(20)]
    rows += [
        ("edge-empty-0", ""),
        ("edge-empty-1", ""),
        ("edge-signs-0", "()[]{}" * 20),
        ("edge-signs-1", "()[]{}" * 20),
        ("edge-nul-0", "\0".join(nul)),
        ("edge-nul-1", " ".join(nul)),
    ]
    return rows


def sample(file: Path, count: int, seed: int) -> list:
    """(id, code, rank) rows: of the file, and the made ones; `rank` is for `order_by`."""
    import pyarrow.parquet

    columns = pyarrow.parquet.read_table(file, columns=["id", "code"])
    rows = list(zip(columns["id"].to_pylist(), columns["code"].to_pylist(), strict=False))

    def place(key: str) -> bytes:
        return hashlib.md5(f"{seed}/{key}".encode()).digest()

    rows.sort(key=lambda row: place(row[0]))
    if len(rows) < count:
        sys.exit(f"{file} has {len(rows)} rows only")
    rows = sorted(rows[:count] + edges())
    # Few distinct ranks, so that the id decides often.
    return [(key, code, place(key)[0] % 4) for key, code in rows]


def write(rows: list, file: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet

    names = ["id", "code", "rank"]
    columns = [list(column) for column in zip(*rows, strict=False)]
    schema = pa.schema([("id", pa.string()), ("code", pa.string()), ("rank", pa.int64())])
    pyarrow.parquet.write_table(
        pa.table(dict(zip(names, columns, strict=False)), schema=schema), file
    )
    return file
