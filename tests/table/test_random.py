"""Random tables × random filters: with skipping as without, whatever is switched; errors are part of the answer."""

import itertools
import tempfile
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.engine.scan import Report, Scan
from tamis.errors import TamisError

from .random_tables import FILTERS, SEGMENTS, Segments, segment, simple

OFF = {"tamis.stats.filter": "off", "tamis.read.lazy": "off"}
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as path:
        yield path


def table_of(folder: str, segments: Segments, cluster_by: tuple[str, ...] = ()) -> tamis.Table:
    table = tamis.create(f"{folder}/{next(NUMBERS)}", segment([]).schema, cluster_by=cluster_by)
    for rows in segments:
        table.append(segment(rows))
    return table


def answer(scan: Scan) -> str:
    """The rows, or that the filter failed: which row fails first may differ with laziness, that one does may not."""
    try:
        return repr(scan.to_arrow().to_pylist())
    except TamisError as error:
        return error.code


@pytest.mark.slow
@given(SEGMENTS, FILTERS, st.sampled_from([(), ("i",), ("s", "i")]))
def test_skipping_changes_nothing(folder: str, segments: Segments, text: str, cluster_by: tuple[str, ...]) -> None:
    table = table_of(folder, segments, cluster_by)
    expected = answer(table.scan(text, options=OFF))
    rows = len(table.scan(text, options=OFF).to_arrow()) if expected.startswith("[") else 0
    for options in (
        {},
        {"tamis.read.lazy": "on"},
        {"tamis.read.lazy": "off"},
        {"tamis.audit.percent": 100},
        {"tamis.stats.filter": "off"},
    ):
        scan = table.scan(text, options=options)
        assert answer(scan) == expected, options
        if expected.startswith("["):
            assert scan.count() == rows
            identities(scan.report)


@settings(max_examples=max(4, settings().max_examples // 30))
@given(
    SEGMENTS,
    FILTERS,
    st.lists(st.sampled_from(["i", "f", "s", "d", "t", "b", "r.x", "r.y"]), min_size=2, max_size=3, unique=True),
    st.integers(0, 4),
)
def test_indexes_change_nothing(folder: str, segments: Segments, text: str, indexed: list[str], late: int) -> None:
    """Two indexes, of a column and of two; from the load ``late`` on, they lack segments."""
    table = table_of(folder, segments[: late + 1])
    table.create_index("one", indexed[0], build="deferred")
    table.create_index("two", indexed[1:], build="deferred")
    table.repair_index()
    for rows in segments[late + 1 :]:
        table.append(segment(rows))
    expected = answer(table.scan(text, options=OFF | {"tamis.index.use": "off"}))
    for use in ("lookup", "plan"):
        scan = table.scan(text, options={"tamis.index.use": use, "tamis.stats.filter": "off"})
        assert answer(scan) == expected, use
        if expected.startswith("["):
            assert "could not be used" not in scan.report.index_reason, scan.report.index_reason
            assert scan.count() == len(table.scan(text, options=OFF | {"tamis.index.use": "off"}).to_arrow())


@pytest.mark.slow
@given(SEGMENTS, st.lists(simple(), min_size=1, max_size=3))
def test_simple_filters_as_pyarrow_evaluates_them(
    folder: str, segments: Segments, filters: list[tuple[str, Callable[[pa.Table], pa.ChunkedArray]]]
) -> None:
    table = table_of(folder, segments)
    whole = pa.concat_tables([segment(rows) for rows in segments])
    mask = pa.chunked_array([pa.array([True] * len(whole))])
    for _, oracle in filters:
        mask = pc.and_kleene(mask, oracle(whole))
    found = table.scan(" AND ".join(text for text, _ in filters)).to_arrow()
    assert repr(found.to_pylist()) == repr(whole.filter(mask).to_pylist())


@pytest.mark.slow
@given(SEGMENTS, FILTERS, st.integers(0, 12))
def test_a_limit_gives_as_many_rows_as_there_are(folder: str, segments: Segments, text: str, limit: int) -> None:
    """The first ones where there is no filter; else some of them, in their order: parts that match wholly are enough."""
    table = table_of(folder, segments)
    everything = answer(table.scan(text, options=OFF))
    if not everything.startswith("["):
        return
    rows = table.scan(text, options=OFF).to_arrow().to_pylist()
    scan = table.scan(text, limit=limit)
    found, left = [repr(row) for row in scan.to_arrow().to_pylist()], iter(repr(row) for row in rows)
    assert len(found) == min(limit, len(rows))
    assert all(row in left for row in found)
    first = table.scan(limit=limit).to_arrow().to_pylist()
    assert repr(first) == repr(table.scan().to_arrow().to_pylist()[:limit])
    identities(scan.report)
    assert scan.count() == min(limit, len(rows))
    identities(scan.report)


@given(SEGMENTS, FILTERS)
@pytest.mark.merge
def test_overwrite_replaces_what_the_filter_matches(folder: str, segments: Segments, text: str) -> None:
    table = table_of(folder, segments)
    before = table.scan().to_arrow().to_pylist()
    if not answer(table.scan(text, options=OFF)).startswith("["):
        with pytest.raises(TamisError):
            table.overwrite(segment([]), text)
        assert repr(table.scan().to_arrow().to_pylist()) == repr(before)
        return
    gone = table.scan(text, options=OFF).to_arrow().to_pylist()
    new = segments[0][:1]
    result = table.overwrite(segment(new), text, allow_outside=True)
    assert (result.rows_inserted, result.rows_deleted) == (len(new), len(gone))
    expected = before.copy()
    texts = [repr(row) for row in expected]
    for row in gone:
        at = texts.index(repr(row))
        texts.pop(at)
    after = [repr(row) for row in table.scan().to_arrow().to_pylist()]
    assert sorted(after) == sorted(texts + [repr(row) for row in segment(new).to_pylist()])


def identities(report: Report | None) -> None:
    s, p, b = report.segments, report.parts, report.bytes
    assert s.skipped == s.by_index + s.by_stats <= s.total
    assert p.total == sum(v for k, v in p.items() if k.startswith("skipped_")) + p.answered + p.kept
    assert p.all_match <= p.kept
    assert p.audited <= sum(v for k, v in p.items() if k.startswith("skipped_"))
    assert b.read == b.metadata + b.index + b.leader + b.follower
    assert 0 <= b.skipped <= b.table
    assert (
        report.blocks.read + report.blocks.skipped_stats + report.blocks.skipped_filter <= report.blocks.total
        or p.audited
    )
    assert not [e for e in report.not_skipped_because if "could not be used" in e.reason]
    assert not report.violations
