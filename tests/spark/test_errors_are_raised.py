"""A part is not skipped if one of its rows makes Spark's filter fail."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

pytestmark = pytest.mark.spark

LAST = 2**63 - 1
"""Microseconds of the last time of 64 bits."""
FILTERS = {
    "forall(array(i, j), x -> 10 / x > 1)": "DIVIDE_BY_ZERO",
    "forall(array(i, 2147483647), x -> x <> 1 AND x + 1 > 0) AND id = 1": "ARITHMETIC_OVERFLOW",
    "from_utc_timestamp(at, 'Asia/Tokyo') > timestamp'2024-01-01'": "overflow",
    "to_utc_timestamp(at, 'America/New_York') > timestamp'2024-01-01'": "overflow",
    "convert_timezone('UTC', 'Asia/Tokyo', local) > timestamp_ntz'2024-01-01'": "overflow",
}


@pytest.mark.parametrize("text", FILTERS)
@pytest.mark.push_cases(2)
def test_an_error_is_not_skipped(lake: Any, text: str) -> None:
    lake.sql("CREATE TABLE lake.db.t (id INT, i INT, j INT, at TIMESTAMP, local TIMESTAMP_NTZ) USING tamis")
    local = f"timestamp_micros({LAST})::timestamp_ntz"
    lake.sql(f"INSERT INTO lake.db.t SELECT 0, NULL, 0, timestamp_micros({LAST}), {local}")
    with pytest.raises((PySparkException, Py4JJavaError), match=FILTERS[text]):
        lake.rows(f"SELECT id FROM lake.db.t WHERE {text}")
