"""Pieces with a value in the middle that lies outside what their ends say: no rule may conclude from the ends alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.core import expr
from tamis.core.pruning import decide
from tamis.core.pruning.value_spec import Spec, constant_spec, join_specs, meet_specs, one_value
from tamis.core.types import DOUBLE, INTEGER
from tests.pruning.evidence_of import RowsEvidence
from tests.pruning.piece_decisions import DAY, FAILS, FALSE, INF, NAN, NULLED, ONE, TRUE, decided, rows
from tests.pruning.trees import SCHEMA


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"({FAILS} AND {FALSE}) IS NULL", "some"),
        (f"({FALSE} AND {FAILS}) IS NULL", "none"),
        (f"({NULLED} AND {FAILS}) IS TRUE", "some"),
        (f"({TRUE} OR {FAILS}) IS NULL", "none"),
        (f"({FAILS} OR {TRUE}) IS NULL", "some"),
        (f"{FAILS} AND {FALSE}", "some"),
        (f"{FALSE} AND {FAILS}", "none"),
        (f"{NULLED} AND {FAILS}", "none"),
        (f"{TRUE} AND {FAILS}", "some"),
    ],
)
def test_an_error_is_not_absorbed(text: str, expected: str) -> None:
    assert decided(text, ONE) == expected


def test_a_range_whose_ends_succeed_may_fail_inside() -> None:
    assert decided("cast(string0 AS INT) > 100", rows(string0=["10", "1x", "20"])) == "some"
    assert decided("integer0 % integer1 = 7", rows(integer0=[1, 1, 1], integer1=[-1, 0, 1])) == "some"
    assert decided("1 / integer1 > 5", rows(integer1=[-1, 0, 1])) == "some"


@pytest.mark.parametrize(("a", "b", "text"), [
    ([-INF, 1.0, INF], [INF, 1.0, -INF], "double0 + double1 > 5e300"),
    ([-1.0, 0.0, 1.0], [INF, INF, INF], "isnan(double0 * double1)"),
    ([1.0, INF, 2.0], [1.0, INF, 2.0], "isnan(double0 - double1)"),
    ([0.5, 1.0, 2.0], [0.0, INF, INF], "isnan(power(double0, double1))"),
    ([1.0, 1.0], [0.0, INF], "power(1.0D, double1) > 2"),
    ([-1.0, 1.0], [-INF, INF], "isnan(power(double0, double1))"),
])  # fmt: skip
def test_a_result_inside_a_range_may_be_nan(a: list[float], b: list[float], text: str) -> None:
    assert decided(text, rows(double0=a, double1=b)) == "some"


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ([0.5, 1.0, 2.0], [0.0, 3.0, 4.0], "power(double0, double1) > 17"),
        ([0.5, 1.0, 2.0], [0.0, 3.0, 4.0], "isnan(power(double0, double1))"),
        ([2.0, 3.0], [1.0, INF], "power(double0, double1) < 1"),
        ([0.25, 0.5], [1.0, INF], "isnan(power(double0, double1))"),
    ],
)
def test_powers_away_from_one_or_of_finite_exponents_prune(a: list[float], b: list[float], text: str) -> None:
    assert decided(text, rows(double0=a, double1=b)) == "none"


def test_nan_in_data_is_above_all_numbers() -> None:
    piece = rows(double0=[NAN, 0.0, -5.0])
    assert decided("double0 = 0.0", piece) == "some"
    assert decided("double0 > 100", piece) == "some"
    assert decided("double0 < -100", piece) == "none"
    assert decided("double0 = double('NaN')", piece) == "some"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("double0 < 100", "some"),
        ("double0 <= 100", "some"),
        ("double0 >= 0", "all"),
        ("double0 > 0", "all"),
        ("double0 <> 7", "all"),
        ("double0 = 1", "some"),
    ],
)
def test_nan_is_false_below_and_true_above(text: str, expected: str) -> None:
    assert decided(text, rows(double0=[NAN, 1.0])) == expected


def test_month_arithmetic_keeps_the_time_of_day() -> None:
    """2024-01-30 23:00 + 1 month is 02-29 23:00, later than 2024-01-31 01:00 + 1 month."""
    hour = 3_600_000_000
    micros = [((DAY + 29) * 24 + 22) * hour, ((DAY + 29) * 24 + 23) * hour, ((DAY + 30) * 24 + 1) * hour]
    piece = rows(timestamp0=micros, timestamp_ntz0=micros)
    assert decided("timestamp0 + INTERVAL 1 MONTH > TIMESTAMP'2024-02-29 22:30:00'", piece) == "some"
    assert decided("timestamp_ntz0 + INTERVAL 1 MONTH > TIMESTAMP_NTZ'2024-02-29 22:30:00'", piece) == "some"
    assert decided("timestamp0 + INTERVAL 1 MONTH > TIMESTAMP'2024-03-01 00:00:00'", piece) == "none"


def test_fields_of_a_date_fall_back_at_the_year() -> None:
    assert decided("month(date0) = 12", rows(date0=[DAY - 200, DAY - 1, DAY + 200])) == "some"
    assert decided("dayofweek(date0) = 7", rows(date0=[DAY, DAY + 5, DAY + 8])) == "some"


def test_a_negative_factor_turns_the_order_round() -> None:
    piece = rows(integer0=[-3, 2], integer1=[-5, 4])
    assert decided("integer0 * integer1 > 14", piece) == "some"
    assert decided("integer0 * integer1 > 15", piece) == "none"
    assert decided("abs(integer0) = 0", rows(integer0=[-5, 0, 5])) == "some"
    assert decided("bigint0 + bigint1 < 0", rows(bigint0=[2**62, 2**62], bigint1=[2**62, 2**62])) == "some"


@pytest.mark.parametrize("zone", ["America/St_Johns", "Europe/Berlin", "Australia/Lord_Howe"])
def test_an_hour_that_comes_twice_is_not_monotone(zone: str) -> None:
    """Two orders for one type: local times go back where the clock does."""
    from tamis.core.expr.time_zones import zone_named as of

    z = of(zone).to_local
    at = next(
        int(s) for s, b, a in zip(z.starts[1:], z.offsets[:-1], z.offsets[1:], strict=True) if a < b and s > 5 * 10**14
    )
    piece = rows(timestamp0=[at - 1, at, at + 7_200_000_000 * 2])
    local = expr.evaluate(
        expr.parse_predicate("cast(timestamp0 AS TIMESTAMP_NTZ) IS NULL", SCHEMA, zone=zone).children[0],
        {f.id: piece.column(i) for i, f in enumerate(SCHEMA.fields)},
        3,
    )
    least = pa.compute.min(local.values).value
    assert least == local.values[1].value
    text = f"cast(timestamp0 AS TIMESTAMP_NTZ) = cast(timestamp_micros({least}L) AS TIMESTAMP_NTZ)"
    found = decide(
        [
            expr.make_call(
                "eq",
                expr.make_call("cast", expr.column_by_ids(SCHEMA, (25,)), zone=zone, type=SCHEMA.by_id[27].type),
                expr.Literal(SCHEMA.by_id[27].type, least),
            )
        ],
        RowsEvidence(SCHEMA, [piece]),
        strict=True,
    )
    assert not found.none[0], text


def test_a_join_admits_what_either_side_admits() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        a, b = (sampled(rng) for _ in range(2))
        for value in range(-6, 7):
            assert admits(join_specs(a, b), value) >= (admits(a, value) or admits(b, value))
            assert admits(meet_specs(a, b), value) >= (admits(a, value) and admits(b, value))
        assert admits(join_specs(a, b), None) == (admits(a, None) or admits(b, None))
        assert bool(join_specs(a, b).fail) == (bool(a.fail) or bool(b.fail))


def sampled(rng: np.random.Generator) -> Spec:
    lo, hi = sorted(int(v) for v in rng.integers(-5, 6, 2))
    bounds = [pa.scalar(None if rng.random() < 0.2 else v, pa.int32()) for v in (lo, hi)]
    return Spec(INTEGER, bounds[0], bounds[1], *(np.asarray(rng.random() < 0.6) for _ in range(4)))


def admits(spec: Spec, value: int | None) -> bool:
    if value is None:
        return bool(spec.null)
    lo, hi = spec.lo.as_py(), spec.hi.as_py()
    return bool(spec.value) and (lo is None or lo <= value) and (hi is None or value <= hi)


def test_nulls_at_both_ends_say_nothing_of_the_middle() -> None:
    assert decided("try_cast(string0 AS INT) = 15", rows(string0=["1x", "15", "1y"])) == "some"
    assert decided("try_cast(bigint0 AS TINYINT) = 5", rows(bigint0=[-1000, 5, 1000])) == "some"


def test_bounds_around_two_to_the_53_are_exact() -> None:
    piece = rows(bigint0=[2**53, 2**53 + 1, 2**53 + 2])
    assert decided(f"bigint0 = {2**53 + 1}", piece) == "some"
    assert decided(f"bigint0 IN ({2**53 + 1}, 0)", piece) == "some"
    assert decided(f"bigint0 > {2**53 + 2}", piece) == "none"
    assert decided("cast(bigint0 AS DOUBLE) = 9007199254740992D", piece) == "some"


def test_lists_around_two_to_the_53_are_exact() -> None:
    """As floats these neighbours are one: then one of them listed would seem to be all there is. Found by the oracle of pairs."""
    least, most, big = -(2**63), 2**63 - 1, 2**53
    piece = rows(bigint0=[big, big + 1])
    assert decided(f"bigint0 NOT IN ({least}, {big})", piece) == "some"
    assert decided(f"bigint0 IN ({least}, {big})", piece) == "some"
    assert decided(f"bigint0 IN ({big}, {big + 1})", piece) == "all"
    assert decided(f"bigint0 NOT IN ({big}, {big + 1})", piece) == "none"
    assert decided(f"bigint0 IN ({least}, 0, {most})", rows(bigint0=[least, most])) == "some"


def test_the_zeros_are_equal_and_print_differently() -> None:
    zero = constant_spec(DOUBLE, pa.scalar(0.0))
    assert not one_value(zero).any()
    assert decided("double0 IN (-0.0D, 5D)", rows(double0=[0.0, 0.0])) == "all"
    assert decided("double0 = 0.0D", rows(double0=[-0.0, 0.0])) == "all"


def test_wide_filters_stay_linear() -> None:
    wide = expr.parse_predicate(" OR ".join(f"integer0 = {i}" for i in range(400)), SCHEMA)
    assert decide([wide], RowsEvidence(SCHEMA, [rows(integer0=[1000, 1001])]), strict=True).none.all()


def test_what_may_fail_blocks_only_what_comes_after() -> None:
    piece = rows(integer0=[1, 2], string0=["a", "b"])
    assert decided("integer0 > 100 AND cast(string0 AS INT) = 1", piece) == "none"
    assert decided("cast(string0 AS INT) = 1 AND integer0 > 100", piece) == "some"
    assert decided("string0 LIKE '%x%' AND integer0 > 100", piece) == "none"
    assert decided("no_such_function(string0) = 1 AND integer0 > 100", piece) == "some"
    assert decided("hash(string0) = 1 AND integer0 > 100", piece) == "none"  # unknown, but it never fails


def test_conjuncts_narrow_what_later_ones_see() -> None:
    piece = rows(integer0=[0, 10], integer1=[0, 5], bigint0=[1, 2])
    assert decided("integer0 > 8 AND integer0 < 3", piece) == "none"
    assert decided("integer0 = 7 AND integer1 > integer0", piece) == "none"
    assert decided("integer0 > 2 AND 10 / integer0 > 9", piece) == "none"
    assert decided("integer0 > 2 AND integer0 < 4", piece) == "some"
    assert decided("integer0 IN (3, 4) AND integer0 > 4", piece) == "none"
    assert decided("integer0 IN (3, 4) AND integer0 > 3", piece) == "some"


def test_narrowing_takes_the_right_end_and_keeps_nan() -> None:
    assert decided("integer1 > integer0 AND integer1 < 3", rows(integer0=[0, 10], integer1=[2, 5])) == "some"
    assert decided("integer1 < integer0 AND integer1 > 7", rows(integer0=[0, 10], integer1=[2, 9])) == "some"
    assert decided("double0 > 1 AND isnan(double0)", rows(double0=[NAN, 2.0])) == "some"
    assert decided("double0 < 3 AND isnan(double0)", rows(double0=[NAN, 2.0])) == "none"


def test_a_column_type_bounds_what_has_no_statistics() -> None:
    """Integer width: no overflow is possible, so nothing fails."""
    evidence = RowsEvidence(SCHEMA, [rows(integer0=[1, 2])], frozenset({"bounds"}))
    assert decide(
        [expr.parse_predicate("cast(integer0 AS BIGINT) + 1 > 3000000000", SCHEMA)], evidence, strict=True
    ).none.all()
