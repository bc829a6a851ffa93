"""Properties that name columns follow them through schema changes: ``tamis.stats.keep`` and ``tamis.write.shred``."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.core.stats.place_properties import renamed_properties
from tamis.core.types import VARIANT
from tamis.core.types.arrow import to_arrow_type

KEEP, SHRED = "tamis.stats.keep", "tamis.write.shred"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("user", pa.string()),
        ("body", pa.string()),
        ("address", pa.struct([("city", pa.string()), ("zip", pa.string())])),
        ("v", to_arrow_type(VARIANT)),
    ]
)


def made(path: Path, keep: str, **more: str) -> tamis.Table:
    return tamis.create(path, SCHEMA, properties={KEEP: keep, **more})


def kept(table: tamis.Table) -> str | None:
    return tamis.open(table.path).snapshot.head.properties.get(KEEP)


@pytest.mark.parametrize(
    ("keep", "old", "new", "expected"),
    [
        ("user", "user", "account", "account"),
        ("id, USER ,body", "user", "account", "id, account, body"),
        ("body.user.id", "body", "doc", "doc.user.id"),
        ("body:user.id", "body", "doc", "doc:user.id"),
        ("body:[0].x", "body", "doc", "doc:[0].x"),
        ("`body`:user", "body", "a.b", "`a.b`:user"),
        ("user", "user", "a,b", "`a,b`"),
        ("user", "user", "a`b", "`a``b`"),
        ("body:x", "body", "a:b", "`a:b`:x"),
        ("address.city", "address", "home", "home.city"),
        ("address.city", ("address", "city"), "town", "address.town"),
        ("address", ("address", "city"), "town", "address"),
        ("id,user", "body", "doc", "id,user"),
    ],
)
def test_a_name_follows_its_column(
    tmp_path: Path, keep: str, old: str | tuple[str, ...], new: str, expected: str
) -> None:
    table = made(tmp_path / "t", keep)
    table.alter().rename_column(old, new).commit()
    assert kept(table) == expected
    table.alter().set_properties({KEEP: expected}).commit()  # every name that is written is a name that is taken


@pytest.mark.parametrize(
    ("keep", "dropped", "expected"),
    [
        ("user", "user", None),
        ("id,user", "user", "id"),
        ("body.user.id, id", "body", "id"),
        ("address.city,address.zip", ("address", "city"), "address.zip"),
        ("address", ("address", "city"), "address"),
    ],
)
def test_a_dropped_column_leaves_no_name_to_another(
    tmp_path: Path, keep: str, dropped: str | tuple[str, ...], expected: str | None
) -> None:
    table = made(tmp_path / "t", keep)
    table.alter().drop_column(dropped).commit()
    assert kept(table) == expected
    table.alter().add_column(dropped, "STRING").commit()
    assert kept(table) == expected


def test_names_are_exchanged_in_one_change(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "user")
    table.alter().rename_column("user", "old").rename_column("body", "user").rename_column("old", "body").commit()
    assert kept(table) == "body"


def test_a_property_that_the_change_sets_means_the_names_of_then(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "id")
    table.alter().set_properties({KEEP: "user"}).rename_column("user", "account").commit()
    assert kept(table) == "account"
    table.alter().rename_column("account", "user").set_properties({KEEP: "user"}).commit()
    assert kept(table) == "user"


def test_shredded_paths_follow_too(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "id", **{SHRED: "v:user.id"})
    table.alter().rename_column("v", "w").commit()
    assert tamis.open(table.path).snapshot.head.properties[SHRED] == "w:user.id"


def test_other_properties_stay(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "", owner="user")
    table.alter().rename_column("user", "account").commit()
    assert tamis.open(table.path).snapshot.head.properties == {KEEP: "", "owner": "user"}


def test_a_schema_without_the_column_removes_its_name(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "user, id")
    without = pa.schema([field for field in SCHEMA if field.name != "user"])
    table.compare_and_evolve_schema(0, without)
    assert kept(table) == "id"


def test_a_schema_that_renames_by_id_renames_the_property(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "user, id")
    fields = [
        field.with_name("account" if field.name == "user" else field.name).with_metadata(
            {"PARQUET:field_id": str(known.id)}
        )
        for field, known in zip(SCHEMA, table.snapshot.head.schemas[0], strict=True)
    ]
    table.compare_and_evolve_schema(0, pa.schema(fields))
    assert kept(table) == "account, id"


def test_statistics_of_a_renamed_column_are_kept(tmp_path: Path) -> None:
    """The budget holds no statistics, so only what is kept prunes; no filter of this process has used it before."""
    table = tamis.create(
        tmp_path / "t",
        pa.schema([("id", pa.int64()), ("user", pa.string()), ("body", pa.string())]),
        properties={"tamis.stats.budget_bytes": "0", KEEP: "user, body:id"},
    )
    table.alter().rename_column("user", "account").rename_column("body", "doc").commit()
    for part in range(3):
        body = json.dumps({"id": part, "other": part})
        table.append(pa.table({"id": [part], "account": [f"u{part}"], "doc": [body]}))
    for text in ("account = 'u1'", "from_json(doc, 'id INT').id = 1"):
        assert table.scan(text).plan().report.parts.kept == 1
    assert table.scan("id = 1").plan().report.parts.kept == 3, "the column is not kept"


def test_properties_of_equal_schemas_are_the_same(tmp_path: Path) -> None:
    schema = made(tmp_path / "t", "user").snapshot.head.schema
    assert schema is not None
    assert renamed_properties({KEEP: "user"}, schema, schema) == {KEEP: "user"}
