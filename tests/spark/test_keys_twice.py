"""Documents with a key twice: Spark's functions take one of its values, another, or none, and no part with a row is skipped."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.conftest import Lake
from tests.stats.document_paths import GETS, PLAIN, TWICE

import tamis


@pytest.fixture
def twice(lake: Lake) -> Lake:
    """A part for each document, which has others without duplicate keys beside it."""
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    table = tamis.create(Path(lake.folder) / "db" / "t", schema)
    for at, document in enumerate(TWICE):
        rows = [document, *(json.dumps(one) for one in PLAIN)]
        table.append(pa.table({"id": [100 * at + i for i in range(len(rows))], "s": rows}, schema))
    return lake


@pytest.mark.merge
def test_no_row_is_lost(twice: Lake) -> None:
    tests = [
        *(f"get_json_object(s, '{path}') {op}" for path in GETS for op in ("= '7'", "= '1'", "IS NULL", "< '2'")),
        *(f"from_json(s, '{field} INT').{field} {op}" for field in "ab" for op in ("= 7", "= 1", "= 2", "IS NULL")),
        *(f"try_variant_get(try_parse_json(s), '$.{field}', 'int') {op}" for field in "ab" for op in ("= 2", "IS NULL")),
        "try_parse_json(s) IS NULL",
    ]  # fmt: skip
    for test in tests:
        plain = "lake.db.t WITH ('tamis.stats.filter' = 'off')"
        query = "SELECT id FROM {t} WHERE " + test + " ORDER BY id"
        assert twice.rows(query.format(t="lake.db.t")) == twice.rows(query.format(t=plain)), test


def test_the_failure_is_not_hidden(twice: Lake) -> None:
    with pytest.raises(Exception, match="DUPLICATE_KEY"):
        twice.rows("SELECT id FROM lake.db.t WHERE variant_get(parse_json(s), '$.b', 'int') > 1000")
