"""Zones over many values at once: in order, out of order and one by one they say the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.core.expr import evaluate, parse_value
from tamis.core.expr.time_zones import DAY, name_with_table, zone_named
from tamis.core.types import STRING, Field, Schema
from tamis.errors import InvalidInput


@pytest.mark.parametrize(
    "name",
    ["Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Africa/Casablanca", "America/Sao_Paulo", "UTC", "+05:30"],
)
@pytest.mark.parametrize("days", [20, 400, 40_000, 300_000])
def test_many_values_are_as_each_alone(name: str, days: int) -> None:
    rng, z = np.random.default_rng(days), zone_named(name)
    middle = 1_300_000_000_000_000
    rising = np.sort(middle + rng.integers(-days * DAY // 2, days * DAY // 2, 3_000))
    shifts = z.to_local.starts[np.abs(z.to_local.starts - middle) < days * DAY // 2]
    rising = np.sort(np.concatenate([rising, shifts, shifts - 1, shifts + 1]))
    order = rng.permutation(len(rising))
    sample = rng.choice(len(rising), 400)
    for ask in (z.local, z.local_low, z.local_high, z.instants, z.instants_low, z.instants_high, z.offset):
        found = np.broadcast_to(ask(rising), rising.shape)
        assert (np.broadcast_to(ask(rising[order]), rising.shape) == found[order]).all()
        assert (np.broadcast_to(ask(rising[sample]), sample.shape) == found[sample]).all()


def test_a_name_may_have_a_table_and_a_text_of_data_may_not() -> None:
    """Java's table of a zone goes behind its name; a value that looks like one is no zone in Spark."""
    name = name_with_table("Here", "3600,0:7200")
    assert zone_named(name).offset(np.array([-1, 0])).tolist() == [3_600_000_000, 7_200_000_000]
    schema = Schema((Field("s", STRING, id=1),))
    texts = [f"2024-01-01 00:00:00 {z}" for z in (name, "a=b", "UTC=", "UTC=eJwzNjMwAAACAgDK", "UTC")]
    for text in ("try_cast(s AS TIMESTAMP)", "try_cast(concat('T', substring(s, 12)) AS TIMESTAMP)"):
        out = evaluate(parse_value(text, schema, zone="UTC", ansi=True), {1: pa.array(texts)}, len(texts))
        assert out.values.is_valid().to_pylist() == [False] * 4 + [True]
    assert parse_value("from_utc_timestamp(NULL, 'a=b')", schema, zone="UTC", ansi=True) is not None


@pytest.mark.parametrize("name", ["a=b", "UTC=", "=", "UTC=eJwzNjMwAAACAgDKxx", "Nowhere"])
def test_what_is_no_zone_is_said_so(name: str) -> None:
    with pytest.raises(InvalidInput, match="UNKNOWN_TIME_ZONE"):
        zone_named(name)
