"""Documents with too many paths: only the objects whose keys explode are folded; what is left admits every value."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.expr.json_codec.json_path import stored_step
from tamis.core.stats.json_paths import path_selection, text_paths
from tamis.core.stats.json_paths.path_collector import PathCollector
from tamis.core.stats.json_paths.path_rows import (
    INCOMPLETE,
    MAP,
    ROOT,
    STRANGE,
    Paths,
    PathStatistics,
    ancestors_of,
    combine_paths,
    nearest_ancestor,
    parent_of,
)
from tamis.core.types import STRING, VARIANT
from tests.stats.document_paths import variants

LIMIT, MOST_KEPT = path_selection.MOST_PATHS, path_selection.MOST_KEPT


def documents(keys: int, rows: int = 200) -> list[dict[str, Any]]:
    """Events whose object ``labels`` has ``keys`` different keys in all, each in one row."""
    return [
        {
            "ts": i,
            "user": {"id": i % 7, "name": f"n{i % 5}"},
            "labels": {f"k{j}": j for j in range(i * keys // rows, (i + 1) * keys // rows)},
            "zz": {"last": i},
        }
        for i in range(rows)
    ]


def collected(rows: list[dict[str, Any]], kind: str, keep: tuple[str, ...] = (), batches: int = 3) -> Paths:
    collector = PathCollector(VARIANT if kind == "variant" else STRING, keep)
    step = -(-len(rows) // batches)
    for start in range(0, len(rows), step):
        texts = [json.dumps(row) for row in rows[start : start + step]]
        collector.update(variants(texts) if kind == "variant" else pa.array(texts))
    return collector.finish()


@pytest.mark.parametrize("kind", ["text", "variant"])
@pytest.mark.parametrize("keys", [LIMIT + 100, 10_000])
def test_only_the_object_whose_keys_explode_is_folded(kind: str, keys: int) -> None:
    paths = collected(documents(keys), kind)
    assert len(paths) <= LIMIT
    assert paths["$.ts"].long == (0, 199)
    assert paths["$.user.id"].long == (0, 6)
    assert paths["$.user.name"].string == ("n0", "n4")
    assert paths["$.zz.last"].long == (0, 199)
    assert paths["$.labels"].kinds & INCOMPLETE
    assert not any(paths[path].kinds & INCOMPLETE for path in ("$", "$.user", "$.zz"))
    assert not any(path.startswith("$.labels.") for path in paths), "rare keys"


@pytest.mark.parametrize("kind", ["text", "variant"])
def test_kept_paths_stay_however_many_others_there_are(kind: str) -> None:
    paths = collected(documents(5_000), kind, keep=("$.labels.k17", "$.labels.k4999"))
    assert paths["$.labels.k17"].long == (17, 17)
    assert paths["$.labels.k4999"].long == (4999, 4999)
    assert paths["$.ts"].long == (0, 199)


@pytest.mark.parametrize("kind", ["text", "variant"])
@pytest.mark.parametrize("keep", ["$", "$.labels"])
def test_what_is_below_a_kept_path_is_not_folded(kind: str, keep: str) -> None:
    keys = 2 * LIMIT + 600
    rows = [row | {"other": row["labels"]} for row in documents(keys)]
    paths = collected(rows, kind, keep=(keep,), batches=2)
    assert {f"$.labels.k{i}" for i in range(keys)} <= paths.keys()
    assert not paths["$.labels"].kinds & INCOMPLETE
    assert bool(paths["$.other"].kinds & INCOMPLETE) is (keep != "$")


@pytest.mark.parametrize("kind", ["text", "variant"])
@pytest.mark.parametrize("batches", [1, 3])
def test_what_is_below_a_kept_path_is_bounded(kind: str, batches: int) -> None:
    paths = collected(documents(MOST_KEPT + 1000), kind, keep=("$.labels",), batches=batches)
    assert LIMIT < len(paths) <= MOST_KEPT + LIMIT
    assert paths["$.labels"].kinds & INCOMPLETE
    assert {"$.ts", "$.user.id", "$.zz.last"} <= paths.keys()


@pytest.mark.parametrize("kind", ["text", "variant"])
def test_a_path_of_recent_filters_is_collected_by_itself(kind: str) -> None:
    """A filter on a whole document does not make all of its paths kept."""
    collector = PathCollector(VARIANT if kind == "variant" else STRING, recent=("$", "$.labels", "$.labels.k17"))
    texts = [json.dumps(row) for row in documents(5_000)]
    collector.update(variants(texts) if kind == "variant" else pa.array(texts))
    paths = collector.finish()
    assert len(paths) <= LIMIT + 3
    assert "$.labels.k17" in paths


@pytest.mark.parametrize("kind", ["text", "variant"])
def test_a_wide_root_keeps_its_frequent_keys(kind: str) -> None:
    rows = [{**{f"c{j}": j for j in range(LIMIT // 2)}, **{f"r{i}_{j}": j for j in range(20)}} for i in range(100)]
    paths = collected(rows, kind)
    assert {f"$.c{j}" for j in range(LIMIT // 2)} <= paths.keys()
    assert not any(path.startswith("$.r") for path in paths)


def test_parts_of_similar_documents_are_folded_alike() -> None:
    rows = documents(4_000)
    first, second = collected(rows[:100], "text"), collected(rows[100:], "text")
    assert first.keys() == second.keys()


@pytest.mark.slow
def test_a_million_different_keys_are_folded() -> None:
    """Each batch is folded by itself, so that no more paths are held than one batch has."""
    held: list[int] = []
    collector = PathCollector(STRING)
    for start in range(0, 1_000_000, 100_000):
        texts = [json.dumps({"ts": i, "m": {f"k{start + i * 100 + j}": 1 for j in range(100)}}) for i in range(1000)]
        collector.update(pa.array(texts))
        held.append(len(collector.finish()))
    assert max(held) <= LIMIT
    assert collector.finish()["$.ts"].long == (0, 999)


@pytest.mark.parametrize("kind", ["text", "variant"])
@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("turn", [1, -1])
def test_a_kept_key_stays_where_a_list_at_its_place_gives_up_positions(kind: str, batches: int, turn: int) -> None:
    rows: list[dict[str, object]] = [{"a": {}, "b": [0]}, {"b": {"k1": 7}}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_selection, "MOST_PATHS", 1)
        patch.setattr(text_paths, "MOST_PATHS", 1)
        paths = collected(rows[::turn], kind, batches=batches, keep=("$.b.k1",))
    assert paths["$.b"].kinds & INCOMPLETE
    assert (paths["$.b.k1"].present, paths["$.b.k1"].long) == (1, (7, 7))


@pytest.mark.parametrize("kind", ["text", "variant"])
@given(data=st.data())
def test_folded_statistics_admit_every_value(kind: str, data: st.DataObject) -> None:
    """Whatever is folded: a listed path has all its values, and a path that is not listed is below a folded object."""
    keys = st.sampled_from(["a", "b", "c'", "d.e", "f\\", "g h", *(f"k{i}" for i in range(12))])
    value = st.recursive(
        st.integers(-5, 5) | st.text("xy", max_size=2),
        lambda inner: st.dictionaries(keys, inner, max_size=6) | st.lists(inner, max_size=3),
        max_leaves=12,
    )
    rows = data.draw(st.lists(st.dictionaries(keys, value, max_size=6), min_size=1, max_size=30))
    most = data.draw(st.integers(1, 12))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_selection, "MOST_PATHS", most)
        patch.setattr(text_paths, "MOST_PATHS", most)
        found = collected(rows, kind, batches=data.draw(st.integers(1, 4)))
        kept = data.draw(st.sampled_from([(), ("$.a",), ("$.b.k1",)]))
        found_with_kept = collected(rows, kind, keep=kept)
    exact: Paths = {}
    for row in rows:
        single = collected([row], kind)
        exact = combine_paths(exact, single) if exact else single
    assert not exact[ROOT].kinds & STRANGE
    for paths in (found, found_with_kept):
        for path, true in exact.items():
            if path in paths:
                assert paths[path].present == true.present
                assert paths[path].long == true.long
                assert paths[path].string == true.string
                assert paths[path].kinds & true.kinds == true.kinds
            else:
                above = nearest_ancestor(path, paths)
                assert above is not None
                assert paths[above].kinds & INCOMPLETE
    assert all(path in found_with_kept for path in kept if path in exact)


@given(
    st.lists(st.text(min_size=1, max_size=4) | st.sampled_from(["a", "['", "']", "a.b", "\\", "'", "[*]"]), max_size=4)
)
def test_the_parent_of_a_stored_path(keys: list[str]) -> None:
    path, above = ROOT, []
    for key in keys:
        above.append(path)
        path = path + stored_step(key)
    assert list(ancestors_of(path)) == above[::-1]
    assert parent_of(path + "[*]") == path


def test_a_path_that_one_side_lacks_is_absent_only_below_a_complete_row() -> None:
    mine = {"$": PathStatistics(MAP, 1, 0), "$.a": PathStatistics(MAP, 1, 0), "$.a.b": PathStatistics(MAP, 1, 0)}
    folded = {"$": PathStatistics(MAP | INCOMPLETE, 1, 0)}
    listed = {**folded, "$.a": PathStatistics(0, 0, 0)}
    assert combine_paths(mine, folded).keys() == {"$"}
    assert combine_paths(mine, listed).keys() == {"$", "$.a", "$.a.b"}
    earlier = {path: PathStatistics(one.kinds, one.present, one.nulls, walk=0) for path, one in listed.items()}
    assert combine_paths(mine, earlier).keys() == {"$", "$.a"}, (
        "rows of earlier writers may be partial below a folded one"
    )


@pytest.mark.parametrize("kind", ["string", "variant"])
def test_queries_beside_and_below_a_folded_object(kind: str) -> None:
    rows = [json.dumps(row) for row in documents(3_000)]
    column = variants(rows) if kind == "variant" else pa.array(rows)
    table = tamis.create(f"memory://folded-{kind}", pa.schema([("b", column.type)]))
    table.append(pa.table({"b": column}))
    get = "variant_get(b, '{0}', 'int')" if kind == "variant" else "CAST(get_json_object(b, '{0}') AS INT)"
    assert table.explain(get.format("$.ts") + " > 199").parts["kept"] == 0
    assert table.explain(get.format("$.user.id") + " > 6").parts["kept"] == 0
    assert table.explain(get.format("$.user.nothing") + " > 6").parts["kept"] == 0
    assert table.scan(get.format("$.labels.k2999") + " = 2999").count() == 1
    assert table.scan(get.format("$.labels.k17") + " = 17").count() == 1
