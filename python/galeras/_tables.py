"""Tables of the store as pyarrow Tables: files are memory-mapped, not copied."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _program

if TYPE_CHECKING:
    import pyarrow as pa


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("tables need pyarrow: pip install 'galeras[tables]'") from error
    return pyarrow


def stored(call: Sequence[str], name: str, defaults: Sequence[str]) -> pa.Table:
    """The table of a step, with the columns that ``galeras show`` gives it.

    ``call`` is the file with its params, as arguments, and ``defaults`` what verbs want that would
    else remember those of the last run. Local files are memory-mapped; a store
    behind a URL sends the rows.
    """
    arrow = _arrow()
    pieces = list(_program.events(["path", *call, name, "--format", "json"]))
    if any("://" in piece["path"] for piece in pieces):
        return stream(["show", *call, name, *defaults, "--format", "arrow"])
    if len(pieces) == 1 and not pieces[0]["cell"] and pieces[0]["port"] != "rejects":
        return _file(arrow, pieces[0]).read(use_threads=True)
    # Keys of united cells and the step of rejects are added on reading: the schema says where.
    head = ["show", *call, name, *defaults, "--rows", "0", "--format", "arrow"]
    schema = stream(head).schema
    return arrow.concat_tables([_read(arrow, piece, schema) for piece in pieces])


def _file(arrow: Any, piece: dict[str, Any]) -> Any:
    # A path of the store is a file, never the folder of a data set with partitions in its name.
    return arrow.parquet.ParquetFile(piece["path"], memory_map=True)


def _read(arrow: Any, piece: dict[str, Any], schema: pa.Schema) -> pa.Table:
    file = _file(arrow, piece)
    there = set(file.schema_arrow.names)
    table = file.read(columns=[name for name in schema.names if name in there], use_threads=True)
    for position, field in enumerate(schema):
        if field.name not in there:
            value = piece["cell"].get(field.name, piece["step"])
            column = arrow.repeat(arrow.scalar(value, field.type), table.num_rows)
            table = table.add_column(position, field, column)
    return table.select(schema.names).cast(schema)


def stream(call: Sequence[str]) -> pa.Table:
    """The table that a verb writes as an Arrow stream to standard output."""
    arrow = _arrow()
    with arrow.ipc.open_stream(io.BytesIO(_program.output(call))) as reader:
        return reader.read_all()
