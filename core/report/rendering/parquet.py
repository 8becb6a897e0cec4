"""A report's rows as Parquet, a file for each kind."""

import json
from io import BytesIO
from typing import Any

import pandas as pd

from ..records import Records, rows_of

FILES = {"value": "values", "claim": "claims", "head": "heads", "step": "steps"}  # by kind of row


def parquet_files(records: Records) -> dict[str, bytes]:
    """Content by file name: values.parquet, claims.parquet, heads.parquet, steps.parquet."""
    rows, contents = rows_of(records), {}
    for kind, name in FILES.items():
        kind_rows = [{key: _flat(value) for key, value in row.items()} for row in rows if row["kind"] == kind]
        stream = BytesIO()
        pd.DataFrame(kind_rows).to_parquet(stream, index=False)
        contents[f"{name}.parquet"] = stream.getvalue()
    return contents


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
