"""A final export leaves a plain table of the other format that has every committed row, and ends the table for Tamis."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.table import StaticTable
from pyiceberg.types import LongType

import tamis
from tamis.bridges.export import final_export
from tamis.errors import Conflict, InvalidInput
from tamis.storage.commit_log import commit as commit_of_the_log
from tamis.storage.commit_log.retry_policy import LostRace, RetryPolicy
from tests.bridges.foreign_readers import metadata_file


def filled(folder: Path) -> tamis.Table:
    table = tamis.create(folder / "t", "id BIGINT, s STRING")
    table.append(pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"]}))
    table.delete("id = 2")
    return table


def delta_ids(folder: Path) -> list[int]:
    return sorted(pl.scan_delta(str(folder / "t")).collect()["id"].to_list())


def iceberg_ids(folder: Path) -> list[int]:
    number = (folder / "t" / "metadata" / "version-hint.text").read_text().strip()
    found = StaticTable.from_metadata(str(folder / "t" / "metadata" / f"v{number}.metadata.json"))
    return sorted(found.scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_the_folder_is_a_plain_table_without_tamis(tmp_path: Path, name: str) -> None:
    filled(tmp_path).export(name, final=True)
    shutil.rmtree(tmp_path / "t" / "_tamis")
    assert {"delta": delta_ids, "iceberg": iceberg_ids}[name](tmp_path) == [1, 3]


def test_other_writers_go_on(tmp_path: Path) -> None:
    filled(tmp_path).export("delta", final=True)
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [4], "s": ["d"]}), mode="append")
    assert delta_ids(tmp_path) == [1, 3, 4]


def test_other_writers_of_iceberg_go_on(tmp_path: Path) -> None:
    table = filled(tmp_path)
    table.alter().add_column("n", "INT").commit()
    table.refresh().append(pa.table({"id": [4, 5], "s": ["d", "e"], "n": pa.array([1, 2], pa.int32())}))
    table.export("iceberg", final=True)
    shutil.rmtree(tmp_path / "t" / "_tamis")
    catalog = SqlCatalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("shop")
    found = catalog.register_table("shop.orders", metadata_file(str(tmp_path / "t")))
    found.append(found.scan(EqualTo("id", 5)).to_arrow())
    found.delete("id = 3")
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [1, 4, 5, 5]
    with found.update_schema() as update:
        update.rename_column("n", "number").add_column("m", LongType())
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [1, 4, 5, 5]


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_what_an_export_leaves_out_is_named(tmp_path: Path, name: str) -> None:
    """Also by a call that finds the export made."""
    columns = "id BIGINT, n BIGINT GENERATED ALWAYS AS IDENTITY, twice BIGINT GENERATED ALWAYS AS (id * 2)"
    table = tamis.create(tmp_path / "t", columns)
    table.alter().add_check("positive", "id > 0").commit()
    for _ in range(2):
        notes = " ".join(table.refresh().export(name).notes)
        assert all(word in notes for word in ("'positive'", "'n'", "'twice'"))


def test_a_path_that_readers_do_not_find_is_named(tmp_path: Path) -> None:
    for name, notes in (("a b", 0), ("a#b", 1), ("a?b", 1), ("a%41", 1)):
        table = tamis.create(tmp_path / name / "t", "id BIGINT")
        assert [len(table.export(kind).notes) for kind in ("delta", "iceberg")] == [notes, notes]


WRITES: dict[str, Any] = {
    "append": lambda t: t.append(pa.table({"id": [9], "s": ["x"]})),
    "delete": lambda t: t.delete("id = 1"),
    "alter": lambda t: t.alter().add_column("more", "INT").commit(),
    "compact": lambda t: t.compact(),
    "create_index": lambda t: t.create_index("by_id", ["id"]),
    "vacuum": lambda t: t.vacuum("0s", dry_run=False, below_retention=True),
    "restore": lambda t: t.restore(1),
    "export": lambda t: t.export("delta", final=True),
    "read": lambda t: t.refresh(),
}


@pytest.mark.push_cases(3)
@pytest.mark.parametrize("verb", WRITES)
def test_tamis_refuses_the_table(tmp_path: Path, verb: str) -> None:
    """Also through an object that was opened before."""
    table = filled(tmp_path)
    other = tamis.open(tmp_path / "t")
    table.export("delta", final=True)
    with pytest.raises(InvalidInput) as caught:
        WRITES[verb](other)
    assert caught.value.code == "TABLE_ENDED"
    with pytest.raises(InvalidInput) as caught:
        tamis.open(tmp_path / "t")
    assert caught.value.code == "TABLE_ENDED"
    assert delta_ids(tmp_path) == [1, 3]


def test_earlier_versions_can_be_opened(tmp_path: Path) -> None:
    filled(tmp_path).export("delta", final=True)
    assert tamis.open(tmp_path / "t", version=1).scan().count() == 3


def test_a_commit_in_between_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(tmp_path)
    other, plain = tamis.open(tmp_path / "t"), commit_of_the_log
    ids = iter([7, 8])

    def commit(*arguments: Any) -> Any:
        if (new := next(ids, None)) is not None:
            other.append(pa.table({"id": [new], "s": ["late"]}))
        return plain(*arguments)

    monkeypatch.setattr(final_export, "commit", commit)
    assert table.export("delta", final=True).version == 4
    assert delta_ids(tmp_path) == [1, 3, 7, 8]


def test_a_conflict_without_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(tmp_path)

    def refuse(*_: Any) -> Any:
        raise Conflict("Another commit landed.", code="CONFLICT_ROWS", name="t", remedy="Try again.")

    monkeypatch.setattr(final_export, "commit", refuse)
    monkeypatch.setattr(final_export, "COMMIT_RACES", RetryPolicy(2, lambda error: isinstance(error, LostRace), 0.0))
    with pytest.raises(Conflict) as caught:
        table.export("delta", final=True)
    assert caught.value.code == "CONFLICT_FINAL_EXPORT"
    assert tamis.open(tmp_path / "t").scan().count() == 2


def test_what_cannot_be_exported_is_not_ended(tmp_path: Path) -> None:
    table = tamis.create(tmp_path / "t", "id BIGINT", format="orc")
    table.append(pa.table({"id": [1]}))
    with pytest.raises(InvalidInput, match="EXPORT_FORMAT"):
        table.export("delta", final=True)
    assert tamis.open(tmp_path / "t").scan().count() == 1


def test_the_property_exports_nothing_after_the_end(tmp_path: Path) -> None:
    table = filled(tmp_path)
    table.alter().set_properties({"tamis.export": "delta"}).commit()
    before = DeltaTable(str(tmp_path / "t")).version()
    table.export("delta", final=True)
    assert (DeltaTable(str(tmp_path / "t")).version(), delta_ids(tmp_path)) == (before, [1, 3])


def test_a_dropped_column_that_files_still_hold_is_named_at_the_exit(tmp_path: Path) -> None:
    """A later column of its name would show the old values: Delta finds columns by name."""
    table = filled(tmp_path)
    table.alter().drop_column("s").commit()
    table.refresh()
    assert not any("'s'" in note for note in table.export("delta").notes)
    notes = table.export("delta", final=True).notes
    assert any("dropped column 's'" in note for note in notes)
    more = pa.table({"id": [4], "s": ["new"]})
    write_deltalake(str(tmp_path / "t"), more, mode="append", schema_mode="merge")
    shown = pl.scan_delta(str(tmp_path / "t")).collect()
    assert set(shown["s"].to_list()) == {"a", "c", "new"}  # what the note warns of


@pytest.mark.parametrize("change", ["rewritten", "iceberg"])
def test_no_dropped_column_is_named_where_none_can_come_back(tmp_path: Path, change: str) -> None:
    table = filled(tmp_path)
    table.alter().drop_column("s").commit()
    table.refresh()
    if change == "rewritten":
        table.overwrite(table.scan().to_arrow())
    name = "iceberg" if change == "iceberg" else "delta"
    assert not any("dropped" in note for note in table.export(name, final=True).notes)
