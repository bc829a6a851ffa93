"""Wrong rules of skipping, each with a check that holds, and fails when the rule is planted.

A check that could not fail would show nothing, so every bug is planted. Values in the middle of a piece lie outside what its ends say.
``ELSEWHERE`` names the tests that show the same end to end, or over every type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tamis
from tamis.core import expr
from tamis.core.expr import registry
from tamis.core.expr.json_codec import variant_columns
from tamis.core.expr.registry import Claim, NaN, Partial
from tamis.core.pruning import (
    ColumnEvidence,
    approximate_rules,
    cast_rules,
    decide,
    logic_rules,
    monotone_rules,
    value_spec,
)
from tamis.core.pruning import column_specs as column
from tamis.core.pruning import decide as decide_of_pieces
from tamis.core.stats import Collector, TableEvidence, collector
from tamis.core.stats.columns import tally
from tamis.core.stats.columns.bounds import array_extremes
from tamis.core.stats.json_paths import path_collector, text_paths, variant_paths
from tamis.core.stats.json_paths.path_evidence import PathTable
from tamis.core.stats.json_paths.path_rows import Paths, PathStatistics, combine_paths
from tamis.core.stats.statistics_decoding import Decoder
from tamis.core.types import DATE, DOUBLE, INTEGER, LONG, STRING, VARIANT, Array, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tests.pruning.evidence_of import RowsEvidence
from tests.pruning.piece_decisions import DAY, FAILS, FALSE, INF, NAN, ONE, decided, rows
from tests.pruning.trees import SCHEMA
from tests.stats.document_paths import variants

Plant = Callable[[pytest.MonkeyPatch], object]


@dataclass(frozen=True)
class Way:
    """``check`` raises ``AssertionError`` where the bug is in; ``plant`` puts it in."""

    check: Callable[[], None]
    plant: Plant


def says(expected: str, text: str, zone: str = "UTC", **columns: list[Any]) -> Callable[[], None]:
    def check() -> None:
        assert decided(text, rows(**columns), zone) == expected

    return check


def entry(name: str, **changes: Any) -> Plant:
    """The catalogue's entry with another claim."""
    return lambda patch: patch.setitem(registry._BY_NAME, name, replace(registry.function_entry(name), **changes))


def by_id(schema: Schema, table: pa.Table, text: str) -> str:
    decision = decide_of_pieces(
        expr.conjuncts_of(expr.parse_predicate(text, schema)), TableEvidence(table, schema), strict=True
    )
    return "none" if decision.none[0] else "all" if decision.all[0] else "some"


def collected(schema: Schema, data: list[dict[str, Any]]) -> pa.Table:
    """One piece's statistics, as they are written."""
    collector = Collector(schema)
    for batch in pa.Table.from_pylist(data, schema=to_arrow_schema(schema)).to_batches():
        collector.update(batch)
    return collector.finish().append_column("rows", pa.array([len(data)], pa.int64()))


def written(schema: Schema, data: list[dict[str, Any]], **expected: str) -> Callable[[], None]:
    """Statistics written and read again; ``expected`` says what each filter comes to (``_`` before it: its text is in ``TEXTS``)."""

    def check() -> None:
        table = collected(schema, data)
        assert {name: by_id(schema, table, TEXTS[name]) for name in expected} == expected

    return check


DOUBLES = Schema((Field("x", DOUBLE, True, 1),))
LONGS = Schema((Field("x", LONG, True, 1),))
ARRAYS = Schema((Field("a", Array(Field("element", LONG, True, 2)), True, 1),))
TEXTS = {"nan": "isnan(x)", "high": "x > 100", "zero": "x = 0.0", "large": f"x = {2**53 + 1}", "first": "a[0] > 100"}


def absorbed(patch: pytest.MonkeyPatch) -> None:
    real = logic_rules.RULES["and"]

    def broken(run: Any, call: Any) -> Any:
        found = real(run, call)
        return replace(found, fail=found.fail & found.true)

    patch.setitem(logic_rules.RULES, "and", broken)


def only_its_own_failures(patch: pytest.MonkeyPatch) -> None:
    module = __import__("tamis.core.pruning.decide", fromlist=["decide"])
    real = module._interpreted

    def broken(run: Any, conjunct: Any, strict: bool) -> Any:
        found = real(run, conjunct, strict)
        return replace(found, fail=found.fail & np.asarray("integer0" in expr.to_sql(conjunct)))

    patch.setattr(module, "_interpreted", broken)


def raw_bounds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(column, "_bounds", lambda _type, found, _length: (found.lo, found.hi))


def null_at_both_ends(patch: pytest.MonkeyPatch) -> None:
    real = monotone_rules._finished

    def broken(entry_: Any, call: Any, args: Any, exact: Any, lo: Any, hi: Any, missing: Any, strange: Any) -> Any:
        found = real(entry_, call, args, exact, lo, hi, missing, strange)
        return replace(found, value=found.value & ~(missing & np.asarray(call.mode is expr.Mode.TRY)))

    patch.setattr(monotone_rules, "_finished", broken)


def absent_is_zero(patch: pytest.MonkeyPatch) -> None:
    real = column._whole

    def broken(array: Any, length: int) -> Any:
        values, _ = real(array, length)
        return values, np.ones(length, bool)

    patch.setattr(column, "_whole", broken)


def any_type(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        column, "_bound", lambda kind, _found, bound, _length: bound.cast(tamis.core.types.arrow.to_arrow_type(kind))
    )


def through_floats(patch: pytest.MonkeyPatch) -> None:
    real = array_extremes
    patch.setattr(
        tally,
        "array_extremes",
        lambda array, nans: tuple(pa.scalar(int(float(v.as_py())), v.type) for v in real(array, nans)),
    )


def no_empty_arrays(patch: pytest.MonkeyPatch) -> None:
    real = collector._sizes

    def broken(array: Any) -> Any:
        sizes = real(array)
        return pc.if_else(pc.equal(sizes, 0), pa.scalar(None, sizes.type), sizes)

    patch.setattr(collector, "_sizes", broken)


def one_zero(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(monotone_rules, "one_value", lambda s: value_spec.surely_true(pc.equal(s.lo, s.hi)))


def inverted() -> None:
    class Inverted(RowsEvidence):
        def column(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
            found = super().column(ids)
            return None if found is None else replace(found, lo=found.hi, hi=found.lo)

    found = decide(
        [expr.parse_predicate("integer0 = 3", SCHEMA)], Inverted(SCHEMA, [rows(integer0=[1, 3, 5])]), strict=True
    )
    assert not found.none[0]


def without_null_counts() -> None:
    evidence = RowsEvidence(SCHEMA, [rows(integer0=[1, None])], frozenset({"nulls"}))
    assert not decide([expr.parse_predicate("integer0 IS NULL", SCHEMA)], evidence, strict=True).none[0]


def of_another_type() -> None:
    class Dates(RowsEvidence):
        def column(self, ids: tuple[int, ...]) -> ColumnEvidence | None:
            found = super().column(ids)
            days = pa.array([1], pa.int32()).cast(pa.date32())
            return None if found is None else replace(found, type=DATE, lo=days, hi=days)

    found = decide([expr.parse_predicate("integer0 = 300", SCHEMA)], Dates(SCHEMA, [rows(integer0=[300])]), strict=True)
    assert not found.none[0]


def twice_the_same_hour() -> None:
    """The least local time belongs to an instant between the ends."""
    from tamis.core.expr.time_zones import zone_named as of

    z = of("Europe/Berlin").to_local
    at = next(
        int(s) for s, b, a in zip(z.starts[1:], z.offsets[:-1], z.offsets[1:], strict=True) if a < b and s > 5 * 10**14
    )
    piece = rows(timestamp0=[at - 1, at, at + 14_400_000_000])
    least = int(of("Europe/Berlin").local(np.array([at]))[0])
    ntz = SCHEMA.find("timestamp_ntz0")[0].type
    local = expr.make_call(
        "cast", expr.column_by_ids(SCHEMA, (SCHEMA.find("timestamp0")[0].id,)), zone="Europe/Berlin", type=ntz
    )
    found = decide([expr.make_call("eq", local, expr.Literal(ntz, least))], RowsEvidence(SCHEMA, [piece]), strict=True)
    assert not found.none[0]


def named_again() -> None:
    """``a`` was dropped and came back as another column: the old one's statistics are not its own."""
    schemas = {0: Schema((Field("a", INTEGER, True, 1),), 0), 1: Schema((Field("a", INTEGER, True, 2),), 1)}
    table = collected(schemas[0], [{"a": 5}, {"a": 5}]).append_column("schema_id", pa.array([0], pa.int32()))
    decision = decide([expr.parse_predicate("a IS NULL", schemas[1])], TableEvidence(table, schemas), strict=True)
    assert decision.all[0]


def of_the_same_name(patch: pytest.MonkeyPatch) -> None:
    real = TableEvidence.column
    patch.setattr(TableEvidence, "column", lambda self, _ids: real(self, (1,)))


def with_gaps() -> None:
    schema = Schema((Field("a", INTEGER, True, 3), Field("b", INTEGER, True, 7)))
    assert by_id(schema, collected(schema, [{"a": 1, "b": 70}, {"a": 2, "b": 71}]), "b = 70") == "some"


def by_position(patch: pytest.MonkeyPatch) -> None:
    real = Decoder.bounds
    patch.setattr(Decoder, "bounds", lambda self, _id, target: real(self, self.ids()[0], target))


def seen_by_the_audit() -> None:
    """The audit tells a failing row from one that is not true; a wrong skip would hide the failure."""
    tree = expr.parse_predicate("1 / integer0 > 5", SCHEMA)
    piece = rows(integer0=[0, 1])
    batch = {f.id: piece.column(i) for i, f in enumerate(SCHEMA.fields)}
    keep, failed, _ = expr.filter_mask([tree], batch, 2)
    assert (keep.tolist(), failed.tolist()) == ([False, False], [True, False])


def failures_are_nulls(patch: pytest.MonkeyPatch) -> None:
    module = __import__("tamis.core.expr.evaluate", fromlist=["evaluate"])
    real = module._apply
    patch.setattr(module, "_apply", lambda call, args: replace(real(call, args), failed=None, error=None))


def of_documents(batches: list[list[str]], text: str, expected: str) -> Callable[[], None]:
    """Statistics of JSON text and of VARIANT, collected batch by batch; ``{0}`` in ``text`` stands for either, read at a path as an integer or a text."""

    def check() -> None:
        collector = Collector(JSON)
        for texts in batches:
            collector.update(
                pa.record_batch([pa.array(texts, pa.string()), variants(texts)], schema=to_arrow_schema(JSON))
            )
        count = sum(map(len, batches))
        place = {
            "segment": pa.array([0], pa.int32()),
            "part": pa.array([0], pa.int32()),
            "rows": pa.array([count], pa.int64()),
        }
        stats, paths = collector.finish(), collector.paths()
        assert paths is not None
        table = pa.table(place | dict(zip(stats.column_names, stats.columns, strict=True)))
        for kind in ("segment", "part"):
            paths = paths.append_column(kind, pa.array([0] * len(paths), pa.int32()))
        evidence = TableEvidence(table, JSON, PathTable.of_parts(paths, table))
        for form in FORMS:
            found = decide_of_pieces(
                expr.conjuncts_of(expr.parse_predicate(text.format(*form), JSON)), evidence, strict=True
            )
            assert ("none" if found.none[0] else "all" if found.all[0] else "some") == expected, form

    return check


JSON = Schema((Field("s", STRING, True, 1), Field("v", VARIANT, True, 2)))
FORMS = [("cast(get_json_object(s, '$.a') AS BIGINT)", "get_json_object(s, '$.a')"), ("v:a::bigint", "v:a::string")]


def known_on_one_side(patch: pytest.MonkeyPatch) -> None:
    """A key that one batch lacks counts as if all its documents had it."""
    real = combine_paths

    def broken(mine: Paths, theirs: Paths) -> Paths:
        out = real(mine, theirs)
        for path in mine.keys() ^ theirs.keys():
            out[path].present = out["$"].present
        return out

    patch.setattr(path_collector, "combine_paths", broken)


def as_floats(patch: pytest.MonkeyPatch) -> None:
    real = PathStatistics.__init__

    def broken(
        self: PathStatistics,
        kinds: int = 0,
        present: int = 0,
        nulls: int | None = 0,
        long: Any = (None, None),
        *more: Any,
        **named: Any,
    ) -> None:
        low, high = (None if v is None else int(float(v)) for v in long)
        real(self, kinds, present, nulls, (low, high), *more, **named)

    patch.setattr(PathStatistics, "__init__", broken)
    walk = text_paths._Walk._integers

    def integers_as_floats(run: Any, here: PathStatistics, values: list[int], steps: Any) -> None:
        walk(run, here, [int(float(v)) for v in values], steps)

    patch.setitem(text_paths._SAY, int, integers_as_floats)


def without_trace(patch: pytest.MonkeyPatch) -> None:
    """Empty objects are no kind of value."""
    real = text_paths._Walk._maps

    def broken(run: Any, here: PathStatistics, values: list[Any], steps: Any) -> None:
        if not steps or any(values):
            real(run, here, values, steps)

    patch.setitem(text_paths._SAY, dict, broken)
    leaf = variant_paths._leaf
    patch.setattr(
        variant_paths,
        "_leaf",
        lambda nodes, kind: (
            PathStatistics(0, len(nodes)) if kind == variant_columns.OBJECT and len(nodes) == 1 else leaf(nodes, kind)
        ),
    )


HOUR = 3_600_000_000
FEBRUARY = [(DAY + 31) * 24 * HOUR] * 3
LATE = [((DAY + 29) * 24 + 22) * HOUR, ((DAY + 29) * 24 + 23) * HOUR, ((DAY + 30) * 24 + 1) * HOUR]
WAYS = {
    "error AND false": Way(lambda: _same(f"({FAILS} AND {FALSE}) IS NULL", ONE), absorbed),
    "an expression that runs before the one that excludes": Way(
        says("some", "cast(string0 AS INT) = 1 AND integer0 > 100", integer0=[1, 2], string0=["a", "b"]),
        only_its_own_failures,
    ),
    "failure inside a range": Way(
        says("some", "make_date(integer0, 2, 29) > DATE'2030-01-01'", integer0=[2020, 2021, 2024]),
        entry("make_date", partial=lambda _: Partial.OUTSIDE),
    ),
    "NaN as a function's result": Way(
        says("some", "isnan(double0 + double1)", double0=[-INF, 1.0, INF], double1=[INF, 1.0, -INF]),
        entry("add", nan=lambda _: NaN.KEPT),
    ),
    "negative NaN in data": Way(
        written(DOUBLES, [{"x": -NAN}, {"x": 0.0}, {"x": -5.0}], nan="some", high="some"),
        lambda patch: patch.setattr(tally, "count_nans", lambda _array: 0),
    ),
    "NaN of both signs": Way(
        written(DOUBLES, [{"x": -NAN}, {"x": 0.0}, {"x": NAN}], zero="some"),
        lambda patch: patch.setattr(
            tally, "count_nans", lambda array: len(array) if pc.any(pc.is_nan(array)).as_py() else 0
        ),
    ),
    "inverted bounds": Way(inverted, raw_bounds),
    "month arithmetic": Way(
        says("some", "timestamp_ntz0 + INTERVAL 1 MONTH > TIMESTAMP_NTZ'2024-02-29 22:30:00'", timestamp_ntz0=LATE),
        entry("timestamp_add_months", rule=None, claims=lambda _: (Claim.UP, Claim.UP)),
    ),
    "a width that is not monotone": Way(
        says("some", "100 div integer1 = 100", integer1=[-5, -1, 1, 5]), entry("div", guard=None)
    ),
    "where the ends agree": Way(  # on 0; a width between them gives 20
        says("some", "100 div integer1 = 20", integer1=[-1000, 5, 1000]),
        entry("div", guard=None),
    ),
    "a field that falls back at the year": Way(
        says("some", "month(date0) = 12", date0=[DAY - 200, DAY - 1, DAY + 200]), entry("month", guard=None)
    ),
    "the months between two days": Way(
        says(
            "some", "months_between(date0, DATE'2024-02-29') = 1.0D", date0=[DAY + 89, DAY + 90, DAY + 91]
        ),  # only of the 31st, as both are a month's last
        lambda patch: patch.setattr(approximate_rules, "_MONTHS", 0.0),
    ),
    "signs flip": Way(
        says("some", "integer0 * integer1 > 14", integer0=[-3, 2], integer1=[-5, 4]),
        entry("multiply", claims=lambda _: (Claim.UP, Claim.UP)),
    ),
    "hours of an interval carry": Way(
        says(
            "some",
            "extract(HOUR FROM (timestamp_ntz0 - TIMESTAMP_NTZ'2024-02-01 00:00:00')) = 0",
            timestamp_ntz0=[FEBRUARY[0] + h * HOUR for h in (22, 24, 26)],
        ),
        entry("interval_hours", guard=None),
    ),
    "midnight wraps": Way(
        says(
            "some",
            "hour(timestamp_ntz0 + INTERVAL 3 HOURS) = 0",
            timestamp_ntz0=[FEBRUARY[0] + h * HOUR for h in (19, 21, 23)],
        ),
        entry("hour", guard=None),
    ),
    "two orders for one type": Way(
        twice_the_same_hour,
        lambda patch: [
            patch.setattr(m, "local_rule", monotone_rules.monotone_bounds) for m in (logic_rules, cast_rules)
        ],
    ),
    "a join that forgets one side": Way(
        says(
            "some",
            "CASE WHEN boolean0 THEN integer0 ELSE integer1 END = 7",
            boolean0=[True, False],
            integer0=[1, 1],
            integer1=[7, 7],
        ),
        lambda patch: patch.setattr(logic_rules, "join_any", lambda a, _b: a),
    ),
    "documents of which some lack the key": Way(
        of_documents([['{"a": 5}'] * 3, ['{"b": 5}'] * 3], "{1} IS NULL", "some"), known_on_one_side
    ),
    "NULL at both ends": Way(
        says("some", "try_cast(bigint0 AS TINYINT) = 5", bigint0=[-1000, 5, 1000]), null_at_both_ends
    ),
    "absent counts": Way(without_null_counts, absent_is_zero),
    "errors that an audit cannot see": Way(seen_by_the_audit, failures_are_nulls),
    "statistics of another type": Way(of_another_type, any_type),
    "lossy numbers": Way(written(LONGS, [{"x": 2**53 + 1}], large="all"), through_floats),
    "lossy numbers in documents": Way(
        of_documents([[f'{{"a": {2**53 + 1}}}']], f"{{0}} = {2**53 + 1}", "all"), as_floats
    ),
    "an empty object in a document": Way(
        of_documents([['{"a": 5}', '{"a": {}}', '{"a": 7}']], "{0} > 100", "some"), without_trace
    ),
    "empty containers": Way(written(ARRAYS, [{"a": [5]}, {"a": []}], first="some"), no_empty_arrays),
    "equal but two": Way(says("some", "cast(double0 AS STRING) = '-0.0'", double0=[0.0, -0.0]), one_zero),
    "statistics by name": Way(named_again, of_the_same_name),
    "columns without gaps": Way(with_gaps, by_position),
}


ELSEWHERE = {
    "an expression that runs before the one that excludes": "tests/scan/test_hidden_errors.py",
    "negative NaN in data": "tests/spark/test_oracle.py::test_every_value_beside_every_other",
    "NaN of both signs": "tests/spark/test_oracle.py::test_every_value_beside_every_other",
    "a field that falls back at the year": "tests/pruning/test_claims.py",
    "a join that forgets one side": "tests/stats/test_document_bounds.py::test_a_union_forgets_no_part",
    "absent counts": "tests/stats/test_garbage.py",
    "errors that an audit cannot see": "tests/scan/test_audit.py::test_a_hidden_error_is_found_and_raised",
    "statistics of another type": "tests/stats/test_garbage.py",
    "lossy numbers": "tests/stats/test_containment.py",
    "statistics by name": "tests/schema/test_evolution.py",
}
"""By way: the test of the same, end to end or over every type."""


def _same(text: str, piece: pa.Table) -> None:
    assert decided(text, piece) == "some"


def test_the_tests_that_are_named_elsewhere_exist() -> None:
    assert set(ELSEWHERE) <= set(WAYS)
    root = Path(__file__).parents[2]
    for place in ELSEWHERE.values():
        path, _, name = place.partition("::")
        assert f"def {name}" in (root / path).read_text()


@pytest.mark.parametrize("way", WAYS)
def test_it_does_not_happen(way: str) -> None:
    WAYS[way].check()


@pytest.mark.parametrize("way", WAYS)
def test_it_would_be_seen(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    WAYS[way].plant(monkeypatch)
    with pytest.raises(AssertionError):
        WAYS[way].check()
