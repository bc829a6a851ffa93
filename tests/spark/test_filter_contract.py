"""Each conjunct is tested by somebody, whoever reads: every reader, owned filter or not, the filter's column selected or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.core.expr import Call, conjuncts_of, parse_predicate
from tamis.core.types import LONG, Field, Schema
from tamis.spark.scan import spark_scan
from tamis.spark.scan.filter_contract import FilterContract, FilterTester, contract_of

SCHEMA = Schema((Field("a", LONG), Field("b", LONG))).assign_ids(0)
A, B = (SCHEMA.find((name,))[-1].id for name in "ab")
FILTER = conjuncts_of(parse_predicate("a > 1 AND b > 2", SCHEMA))


def made(**changes: Any) -> FilterContract:
    given: dict[str, Any] = {
        "owned": False,
        "evaluated": None,
        "every_row_matches": False,
        "requested": frozenset({A, B}),
    }
    return contract_of(FILTER, **(given | changes))


def test_a_conjunct_that_nobody_tests_is_refused() -> None:
    with pytest.raises(AssertionError, match="Nobody tests"):
        made(owned=True)
    with pytest.raises(AssertionError, match="Nobody tests"):
        made(owned=True, evaluated=FILTER[:1])
    assert made(owned=True, evaluated=FILTER).testers == (frozenset({FilterTester.READER}),) * 2
    assert made(owned=True, every_row_matches=True).testers == (frozenset({FilterTester.STATISTICS}),) * 2
    assert made(owned=True, join_keys=FILTER).testers == (frozenset({FilterTester.JOIN}),) * 2


def test_hints_are_what_is_tested_above_over_requested_columns() -> None:
    assert made().hints == tuple(FILTER)
    assert made(requested=frozenset({A})).hints == tuple(FILTER[:1])
    assert made(owned=True, every_row_matches=True).hints == ()
    assert made(evaluated=FILTER).hints == (), "the Python reader needs none"
    failing = conjuncts_of(parse_predicate("1 / a > 0 AND b > 2", SCHEMA))
    assert (
        contract_of(failing, owned=False, evaluated=None, every_row_matches=False, requested=frozenset({A, B})).hints
        == ()
    )


def test_an_unsound_hint_is_refused() -> None:
    spark, nobody = frozenset({FilterTester.SPARK}), frozenset({FilterTester.STATISTICS})
    with pytest.raises(AssertionError, match="does not return"):
        FilterContract(tuple(FILTER[:1]), (spark,), tuple(FILTER[:1]), frozenset({B}))
    with pytest.raises(AssertionError, match="above the scan"):
        FilterContract(tuple(FILTER[:1]), (nobody,), tuple(FILTER[:1]), frozenset({A}))
    assert isinstance(FILTER[0], Call)


ROWS = [
    (part * 200 + i, i % 7, None if i % 5 == 0 else i % 31, f"k{i % 13:02}") for part in range(4) for i in range(200)
]
READERS = {
    ("parquet", False): ("auto", "on", "native"),
    ("parquet", True): ("auto",),
    ("orc", False): ("auto",),
    ("vortex", False): ("off",),
}
"""By format, and whether there is an index: values of ``tamis.read.lazy``. The oracle runs all others."""
FILTERS = {
    "a >= 0": lambda r: True,
    "a >= 200 AND a < 600": lambda r: 200 <= r[0] < 600,
    "c = 7": lambda r: r[2] == 7,
    "c IN (1, 2, 77)": lambda r: r[2] in (1, 2, 77),
    "c IS NULL": lambda r: r[2] is None,
}


def shapes(table: str, filter_: str, kept: list[tuple[Any, ...]]) -> Iterator[tuple[str, Any]]:
    """Queries of one value, as subqueries, and that value. A limit or an aggregate stands above each scan, so that it owns its filter."""
    source = f"{table} WHERE {filter_}"
    yield f"SELECT count(1) FROM (SELECT b FROM {source} LIMIT 3)", min(3, len(kept))
    yield f"SELECT count(1) FROM (SELECT DISTINCT b FROM {source})", len({r[1] for r in kept})
    yield f"SELECT sum(n) FROM (SELECT b, count(*) AS n FROM {source} GROUP BY b)", len(kept) or None
    yield f"SELECT max(b) FROM {source}", max((r[1] for r in kept), default=None)
    yield (
        f"SELECT sum(b) FROM (SELECT b FROM {source} ORDER BY b DESC LIMIT 4)",
        sum(sorted((r[1] for r in kept), reverse=True)[:4]) if kept else None,
    )


@pytest.mark.spark
@pytest.mark.parametrize(("format_", "indexed"), READERS)
@pytest.mark.push_cases(1)
def test_every_reader_gives_the_rows_of_owned_and_other_filters(
    lake: Any, format_: str, indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: set[tuple[bool, bool]] = set()

    def noted(*args: Any, **given: Any) -> FilterContract:
        if args[0]:
            met.add((given["owned"], given["evaluated"] is None))
        return contract_of(*args, **given)

    monkeypatch.setattr(spark_scan, "contract_of", noted)
    table = tamis.create(
        lake.folder / "db" / "t",
        pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64()), ("s", pa.string())]),
        format=format_,
        cluster_by=["a"],
    )
    if indexed:
        table.create_index("by_c", ["c"])
    for part in range(4):
        table.append(pa.table(dict(zip("abcs", zip(*ROWS[part * 200 : part * 200 + 200], strict=True), strict=True))))
    wrong = []
    for reader in READERS[format_, indexed]:
        name = f"lake.db.t WITH ('tamis.read.lazy' = '{reader}')"
        cases = [case for text, test in FILTERS.items() for case in shapes(name, text, [r for r in ROWS if test(r)])]
        for start in range(0, len(cases), 10):
            chunk = cases[start : start + 10]
            found = lake.rows("SELECT " + ", ".join(f"({query})" for query, _ in chunk))[0]
            wrong += [(query, got, right) for (query, right), got in zip(chunk, found, strict=True) if got != right]
        for columns in ("b", "a, c, s"):  # nothing stands above these scans: Spark tests the filter
            branches = [
                f"SELECT {at} AS query, struct({columns}) FROM {name} WHERE {text}" for at, text in enumerate(FILTERS)
            ]
            got = [(at, tuple(row)) for at, row in lake.rows(" UNION ALL ".join(branches))]
            places = ["abcs".index(column) for column in columns.split(", ")]
            right = [
                (at, tuple(r[i] for i in places)) for at, test in enumerate(FILTERS.values()) for r in ROWS if test(r)
            ]
            wrong += [] if sorted(map(repr, got)) == sorted(map(repr, right)) else [(columns, len(got), len(right))]
    assert not wrong
    if format_ == "parquet" and not indexed:
        assert met == {(owned, spark_reads) for owned in (False, True) for spark_reads in (False, True)}
    elif format_ != "parquet":
        assert met == {(False, False), (True, False)}, "Spark's Parquet reader reads no other format"
