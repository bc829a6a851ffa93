"""Law of images: version a, without deletes and preimages and with inserts and postimages, is version b; a pair has one key."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.engine.operations.rows import change_images
from tamis.errors import InvalidInput, NotFound
from tests.operations.making import table

SCHEMA = pa.schema([("ts", pa.int64()), ("user", pa.int64()), ("name", pa.string())])
GONE, COME = ("delete", "update_preimage"), ("insert", "update_postimage")


def data(keys: list[int], mark: str) -> pa.Table:
    return pa.table({"ts": keys, "user": [k % 3 for k in keys], "name": [mark] * len(keys)}, schema=SCHEMA)


def bag(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.select(SCHEMA.names).to_pylist()))


def applied(of: tamis.Table, a: int, b: int, **asked: Any) -> Counter[str]:
    """The rows of ``a`` after the feed, applied in its order; a row that goes has to be there."""
    now = bag(of.scan(version=a).to_arrow())
    for row in of.changes(a, b, **asked).to_arrow().to_pylist():
        text = repr({name: row[name] for name in SCHEMA.names})
        if row["_change_type"] in GONE:
            assert now[text] > 0, row
            now[text] -= 1
        else:
            assert row["_change_type"] in COME
            now[text] += 1
    return +now


def pairs_of(changes: pa.Table) -> list[tuple[int, int, Any, Any]]:
    """Return version, key and the names before and after of every update; both images of a pair have the same place."""
    rows = changes.to_pylist()
    before = [r for r in rows if r["_change_type"] == "update_preimage"]
    after = [r for r in rows if r["_change_type"] == "update_postimage"]
    assert [(r["_commit_version"], r["ts"]) for r in before] == [(r["_commit_version"], r["ts"]) for r in after]
    return [(x["_commit_version"], x["ts"], x["name"], y["name"]) for x, y in zip(before, after, strict=True)]


def test_updates_are_told_as_pairs() -> None:
    of = table()
    of.append(data([1, 2, 3, 4], "a"))
    of.update({"name": "'b'"}, "ts >= 3")
    of.upsert(data([4, 5], "c"), "ts")
    of.delete("ts = 1")
    changes = of.changes(0, keys="ts").to_arrow()
    assert pairs_of(changes) == [(2, 3, "a", "b"), (2, 4, "a", "b"), (3, 4, "b", "c")]
    rest = [
        (r["_commit_version"], r["_change_type"], r["ts"])
        for r in changes.to_pylist()
        if "update" not in r["_change_type"]
    ]
    assert rest == [*[(1, "insert", n) for n in (1, 2, 3, 4)], (3, "insert", 5), (4, "delete", 1)]
    assert {r["_change_type"] for r in of.changes(0).to_arrow().to_pylist()} == {"insert", "delete"}, (
        "keys ask for images"
    )


def test_a_net_feed_tells_what_is_left() -> None:
    of = table()
    of.append(data([1, 2, 3], "a"))
    of.append(data([9], "soon gone"))
    of.update({"name": "'b'"}, "ts = 2")
    of.compact()
    of.delete("ts = 9 OR ts = 3")
    of.update({"name": "'c'"}, "ts = 2")
    changes = of.changes(1, keys=["ts"], net=True).to_arrow()
    assert [(r["_change_type"], r["ts"], r["name"], r["_commit_version"]) for r in changes.to_pylist()] == [
        ("delete", 3, "a", 6),
        ("update_preimage", 2, "a", 6),
        ("update_postimage", 2, "c", 6),
    ]
    assert applied(of, 1, 6, net=True) == bag(of.scan().to_arrow())
    assert of.changes(3, 4, net=True).to_arrow().num_rows == 0, "compaction changes no row"
    assert of.changes(6, 6, net=True).to_arrow().num_rows == 0
    of.restore(1)
    assert of.changes(1, net=True).to_arrow().num_rows == 0, "the same rows in other parts"


def test_a_row_without_a_key_is_no_update() -> None:
    of = table()
    of.append(pa.table({"ts": [None, None, 1], "user": [7, 8, 1], "name": ["x", "x", "x"]}, schema=SCHEMA))
    of.update({"name": "'y'"}, all_rows=True)
    kinds = Counter((r["_change_type"], r["ts"]) for r in of.changes(1, keys=["ts"]).to_arrow().to_pylist())
    assert kinds == {("delete", None): 2, ("insert", None): 2, ("update_preimage", 1): 1, ("update_postimage", 1): 1}


def test_keys_that_do_not_tell_the_rows_apart_are_refused() -> None:
    of = table()
    of.append(data([1, 2, 4], "a"))
    of.update({"name": "'b'"}, all_rows=True)
    with pytest.raises(InvalidInput, match=r"Version 2 of .* with user = 1") as error:
        of.changes(0, keys=["USER"]).to_arrow()
    assert error.value.code == "DUPLICATE_KEYS"
    assert len(pairs_of(of.changes(0, keys=["user", "ts"]).to_arrow())) == 3
    with pytest.raises(NotFound, match="nosuch"):
        of.changes(0, keys=["nosuch"])
    nested = tamis.create(
        "memory://nested-key", pa.schema([("s", pa.struct([("a", pa.int64())])), ("l", pa.list_(pa.int64()))])
    )
    for name in ("s", "s.a", "l"):
        with pytest.raises(InvalidInput, match="nested") as error:
            nested.changes(0, keys=[name])
        assert error.value.code == "BAD_KEY"


def test_a_feed_has_the_columns_of_its_last_version() -> None:
    of = table()
    of.append(data([1, 2], "a"))
    of.update({"name": "'b'", "user": "user + 10"}, "ts = 2")
    of.alter().drop_column("name").rename_column("ts", "key").add_column("more", "INT").commit()
    of.update({"more": "5"}, "key = 1")
    changes = of.changes(0, keys=["key"]).to_arrow()
    assert changes.schema.names[:3] == ["key", "user", "more"]
    assert [(r["_change_type"], r["_commit_version"], r["key"], r["more"]) for r in changes.to_pylist()[2:]] == [
        ("update_preimage", 2, 2, None),
        ("update_postimage", 2, 2, None),
        ("update_preimage", 4, 1, None),
        ("update_postimage", 4, 1, 5),
    ]
    assert of.changes(0, 2, keys=["ts"]).schema.names[:3] == ["ts", "user", "name"], "as of version 2"


def test_wide_images_come_in_batches_of_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order, and which images are a pair, stay the same."""
    of = table()
    widths = [300 if n % 4 == 0 else n % 3 for n in range(120)]
    for first in range(0, 120, 40):
        keys = list(range(first, first + 40))
        names = ["a" * widths[k] for k in keys]
        of.append(pa.table({"ts": keys, "user": [0] * 40, "name": names}, schema=SCHEMA))
    keys = [*range(119, 59, -1), *range(200, 220)]
    of.overwrite(pa.table({"ts": keys, "user": [1] * 80, "name": ["b" * widths[k % 120] for k in keys]}, schema=SCHEMA))
    expected = of.changes(3, keys=["ts"]).to_arrow()
    monkeypatch.setattr(change_images, "BATCH_BYTES", 2_000)
    batches = list(of.changes(3, keys=["ts"]).to_batches())
    assert pa.Table.from_batches(batches).equals(expected)
    assert len(pairs_of(expected)) == 60
    added = expected.select(["_change_type", "_commit_version", "_commit_timestamp"]).nbytes // len(expected) + 1
    images = [batch for batch in batches if batch.column("_change_type")[0].as_py().startswith("update")]
    assert len(images) > 4
    assert max(batch.nbytes - added * len(batch) for batch in images) <= 2_000 * 1.1


OPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "update", "delete", "upsert", "compact", "restore", "overwrite"]),
        st.integers(0, 11),
        st.integers(1, 6),
    ),
    min_size=1,
    max_size=7,
)


def run(of: tamis.Table, operation: str, at: int, size: int, mark: str) -> None:
    """One operation that keeps ``ts`` unique."""
    keys = list(range(at, at + size))
    if operation == "append":
        held = set(of.scan(selected_fields=["ts"]).to_arrow()["ts"].to_pylist())
        of.append(data([k for k in keys if k not in held], mark))
    elif operation == "update":
        of.update({"name": f"concat('{mark}', ts % 2)" if size % 2 else "name"}, f"ts >= {at} AND ts < {at + size}")
    elif operation == "delete":
        of.delete(f"ts >= {at} AND ts < {at + size // 2}")
    elif operation == "upsert":
        of.upsert(data(keys, mark), "ts")
    elif operation == "compact":
        of.compact()
    elif operation == "restore":
        of.restore(at % (of.version + 1))
    else:
        of.overwrite(data(keys, mark))


@pytest.mark.slow
@given(OPS)
def test_any_feed_leads_from_one_version_to_the_other(operations: list[tuple[str, int, int]]) -> None:
    of = table()
    of.append(data([0, 2, 4, 6], "first"))
    for number, (operation, at, size) in enumerate(operations):
        run(of, operation, at, size, f"m{number}")
        of.refresh()
    last = of.version
    for a in {0, 1, last // 2}:
        want = bag(of.scan(version=last).to_arrow())
        for asked in ({}, {"keys": ["ts"]}, {"net": True}, {"keys": ["ts"], "net": True}):
            assert applied(of, a, last, **asked) == want, (a, asked)
        changes = of.changes(a, last, keys=["ts"]).to_arrow()
        assert all(before != after for _, _, before, after in pairs_of(changes)), (
            "a row that stayed as it was is no update"
        )
        single = Counter((r["_commit_version"], r["ts"], r["_change_type"]) for r in changes.to_pylist())
        assert set(single.values()) <= {1}
        for version, key in {(v, k) for v, k, kind in single if kind == "delete"}:
            assert (version, key, "insert") not in single, "that would be an update"
