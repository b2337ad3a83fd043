"""The dataset as two Parquet tables, for tools that read no JSON lines: one row per logical run, one per attempt.

Lossless: money stays the decimal string that the line holds, and null stays null. The bytes of a Parquet file depend on
the library that writes it, so nothing is signed or compared in this form; `dataset.jsonl` is the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet

from controller.domain.dataset import LogicalRunRow

_CHARGE: Final = pa.struct(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("amount", pa.string()),
        pa.field("currency", pa.string(), nullable=False),
    ]
)
_PROOFS: Final = pa.struct([("observed_model", pa.bool_()), ("receipt", pa.bool_())])


def _schema(form: str, needed: dict[str, pa.DataType], optional: dict[str, pa.DataType]) -> pa.Schema:
    fields = [pa.field(name, kind, nullable=False) for name, kind in needed.items()]
    fields += [pa.field(name, kind) for name, kind in optional.items()]
    return pa.schema(fields, metadata={"fairtrial": form})


RUNS: Final = _schema(
    "fairtrial.runs/1",
    {
        "line": pa.int64(),
        **dict.fromkeys(("schema_version", "round_id", "manifest_digest", "kind", "task", "cluster"), pa.string()),
        **dict.fromkeys(("stratum", "visibility", "arm", "model"), pa.string()),
        "replicate": pa.int64(),
        "outcome": pa.string(),
        "currency": pa.string(),
        "charges": pa.list_(_CHARGE),
    },
    {
        "usd": pa.string(),
        "figure": pa.string(),
        "wall_ms": pa.int64(),
        "latency_ms": pa.int64(),
        "scored_attempt": pa.int64(),
        "proofs": _PROOFS,
        "challenge": pa.string(),
    },
)
ATTEMPTS: Final = _schema(
    "fairtrial.attempts/1",
    {
        "line": pa.int64(),
        "task": pa.string(),
        "arm": pa.string(),
        "replicate": pa.int64(),
        "attempt_id": pa.string(),
        "number": pa.int64(),
        "end": pa.string(),
        "reason": pa.string(),
        "wall_ms": pa.int64(),
        "requests": pa.int64(),
        "tokens": pa.map_(pa.string(), pa.int64()),
        "would_have_passed": pa.bool_(),
    },
    {
        "usd": pa.string(),
        "turns": pa.int64(),
        "tool_calls": pa.int64(),
        "self_reported_usd": pa.string(),
        "verified": pa.bool_(),
    },
)


def parquet_tables(rows: Sequence[LogicalRunRow]) -> dict[str, bytes]:
    """The two files by name. `line` counts the lines of the dataset from 1 and joins them; rows keep its order."""
    runs, attempts = [], []
    for line, row in enumerate(rows, start=1):
        # Not by `model_dump`, which leaves out what the first version of the format lacks.
        runs.append({**{name: getattr(row, name) for name in RUNS.names[1:]}, "line": line, **_nested(row)})
        for attempt in row.attempts:
            key = {"line": line, "task": row.task, "arm": row.arm, "replicate": row.replicate}
            attempts.append({**attempt.model_dump(mode="json"), **key, "tokens": list(attempt.tokens.items())})
    return {"runs.parquet": _file(runs, RUNS), "attempts.parquet": _file(attempts, ATTEMPTS)}


def _nested(row: LogicalRunRow) -> dict[str, Any]:
    return {
        "charges": [charge.model_dump(mode="json") for charge in row.charges],
        "proofs": None if row.proofs is None else row.proofs.model_dump(mode="json"),
    }


def _file(records: list[dict[str, Any]], schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist(records, schema=schema), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data
