"""Switches: which source wins, what is refused."""

from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.core.types import VARIANT
from tamis.core.types.arrow import to_arrow_type
from tamis.engine.scan.scan_options import Options, check_properties
from tamis.errors import InvalidInput


def test_option_over_conf_over_property_over_default() -> None:
    name = "tamis.scan.max_bytes"
    assert Options.resolve().scan_max_bytes is None
    assert Options.resolve({}, {}, {name: "1"}).scan_max_bytes == 1
    assert Options.resolve({}, {name: "2"}, {name: "1"}).scan_max_bytes == 2
    assert Options.resolve({name: "3"}, {name: "2"}, {name: "1"}).scan_max_bytes == 3


@pytest.mark.parametrize(
    ("key", "value", "attribute", "expected"),
    [
        ("tamis.stats.filter", "off", "stats_filter", False),
        ("tamis.stats.collect", True, "stats_collect", True),
        ("tamis.read.lazy", "ON", "read_lazy", "on"),
        ("TAMIS.READ.LAZY", "native", "read_lazy", "native"),
        ("tamis.write.part_bytes", "64MB", "write_part_bytes", 64 * 2**20),
        ("tamis.write.part_bytes", "1k", "write_part_bytes", 1024),
        ("tamis.write.part_bytes", 7, "write_part_bytes", 7),
        ("tamis.audit.percent", "2.5", "audit_percent", 2.5),
        ("tamis.stats.keep", "a, b.c", "stats_keep", ("a", "b.c")),
        ("tamis.index.use", "by_user", "index_use", "by_user"),
        ("timezone", "Europe/Paris", "timezone", "Europe/Paris"),
        ("timezone", "+02:00", "timezone", "+02:00"),
        ("ansi", "false", "ansi", False),
    ],
)
def test_values(key: str, value: object, attribute: str, expected: object) -> None:
    assert getattr(Options.resolve({key: value}), attribute) == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tamis.stats.filter", "maybe"),
        ("tamis.read.lazy", "sometimes"),
        ("tamis.write.part_bytes", "0"),
        ("tamis.write.part_bytes", "-1"),
        ("tamis.write.part_bytes", "64 parsecs"),
        ("tamis.write.part_bytes", True),
        ("tamis.audit.percent", 101),
        ("tamis.audit.percent", "many"),
        ("tamis.scan.max_bytes", None),
        ("tamis.index.use", ""),
        ("timezone", "Europe/Atlantis"),
        ("timezone", "../etc"),
    ],
)
def test_a_bad_value_names_the_option(key: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Options.resolve({key: value})
    assert caught.value.code == "BAD_OPTION"
    assert caught.value.name == key
    assert caught.value.remedy.startswith("Give ")


def test_an_unknown_option_is_named_with_those_there_are() -> None:
    with pytest.raises(InvalidInput) as caught:
        Options.resolve({"tamis.stats.fitler": "off"})
    assert (caught.value.code, caught.value.name) == ("UNKNOWN_OPTION", "tamis.stats.fitler")
    assert "tamis.stats.filter" in caught.value.remedy
    with pytest.raises(InvalidInput):
        Options.resolve({}, {"tamis.nope": "1"})


def test_what_is_not_ours_passes_where_it_may() -> None:
    assert Options.resolve({"versionAsOf": "3", "tamis.stats.filter": "off"}, foreign=True).stats_filter is False
    assert Options.resolve({}, {"spark.sql.ansi.enabled": "true"}, {"owner": "me", "tamis.later": "1"}) == Options()
    with pytest.raises(InvalidInput):
        Options.resolve({"tamis.nope": "3"}, foreign=True)


def test_properties_are_checked_before_they_are_stored() -> None:
    assert check_properties({"owner": "me", "tamis.stats.filter": False, "n": 3}) == {
        "owner": "me",
        "tamis.stats.filter": "false",
        "n": "3",
    }
    for bad in ({"tamis.nope": "1"}, {"tamis.read.lazy": "x"}, {"owner": None}, {3: "x"}):
        with pytest.raises(InvalidInput):
            check_properties(bad)


@pytest.mark.parametrize("given", [({"tamis.export": "delta"},), ({}, {"Tamis.Export": "delta"})])
def test_a_property_of_tables_is_no_option(given: tuple[dict[str, str], ...]) -> None:
    with pytest.raises(InvalidInput, match="property of a table") as error:
        Options.resolve(*given)
    assert error.value.code == "BAD_OPTION"
    assert Options.resolve({}, {}, {"tamis.export": "delta"}).export == ("delta",)


def test_as_dict_uses_the_public_names() -> None:
    shown = Options(stats_filter=False).as_dict()
    assert shown["tamis.stats.filter"] is False
    assert Options.resolve({k: v for k, v in shown.items() if v is not None}) == Options(stats_filter=False)


PLACES = ["user", "address.city", "body", "body.user.id", "body:user.id", "doc.a[0].b", "tags.element"]
MISSPELT = ["usr", "address.cty", "user.id", "body , usr", "nowhere.else"]


def test_what_is_kept_are_columns_that_there_are(tmp_path: Path) -> None:
    """Where it is set: with the table, or later; columns that were dropped are none that were misspelt, and of documents any path may come."""
    name = "tamis.stats.keep"
    variant = to_arrow_type(VARIANT)
    fields = [("user", pa.int64()), ("address", pa.struct([("city", pa.string())])), ("body", pa.string()), ("doc", variant), ("tags", pa.list_(pa.string())), ("old", pa.int32())]  # fmt: skip
    schema = pa.schema(fields)
    table = tamis.create(tmp_path / "t", schema, properties={name: ", ".join(PLACES)})
    for number, wrong in enumerate(MISSPELT):
        with pytest.raises(tamis.InvalidInput, match="there is no such column") as error:
            tamis.create(tmp_path / f"t{number}", schema, properties={name: wrong})
        assert error.value.code == "BAD_PROPERTY"
        assert error.value.name == wrong.rpartition(",")[2].strip()
        with pytest.raises(tamis.InvalidInput, match="there is no such column"):
            table.alter().set_properties({name: wrong}).commit()
    table.alter().drop_column("old").commit()
    table.alter().set_properties({name: "old, user"}).commit()
    table.alter().add_column("fresh", pa.int32()).set_properties({name: "fresh"}).commit()
    assert table.refresh().properties[name] == "fresh"


@pytest.mark.parametrize(
    ("wrong", "limit"),
    [
        ("doc." + ".".join("abcdefghijklm"), "12 steps"),
        ("doc.a[8]", "[7]"),
        ("body:a[0][1][2]", "at most 2 positions"),
        ("body." + "k" * 1001, "1000 characters"),
        ("tags.x", "documents outside of arrays"),
        ("tags.element.x", "documents outside of arrays"),
        ("props.x", "documents outside of arrays"),
    ],
)
def test_what_has_no_statistics_of_its_own_cannot_be_kept(tmp_path: Path, wrong: str, limit: str) -> None:
    name = "tamis.stats.keep"
    fields = [("body", pa.string()), ("doc", to_arrow_type(VARIANT)), ("tags", pa.list_(pa.string())), ("props", pa.map_(pa.string(), pa.string()))]  # fmt: skip
    with pytest.raises(tamis.InvalidInput, match="no statistics of its own") as error:
        tamis.create(tmp_path / "t", pa.schema(fields), properties={name: f"body.a, {wrong}"})
    assert (error.value.code, error.value.name) == ("BAD_PROPERTY", wrong)
    assert limit in error.value.remedy
    tamis.create(
        tmp_path / "t", pa.schema(fields), properties={name: "doc." + ".".join("abcdefghijkl") + ", doc.a[7][0]"}
    )


@pytest.mark.parametrize(
    ("key", "remedy"), [("tamis.format", "when it is made"), ("tamis.timezone", "'timezone'"), ("tamis.ansi", "'ansi'")]
)
def test_what_is_said_elsewhere_is_no_property(key: str, remedy: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_properties({key: "x"})
    assert (caught.value.code, caught.value.name) == ("BAD_PROPERTY", key)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("key", "value"), [("delta.appendOnly", "true"), ("DELTA.APPENDONLY", True), ("delta.constraints.c", "id > 0")]
)
def test_a_property_that_would_protect_rows_elsewhere_is_refused(key: str, value: str | bool) -> None:
    with pytest.raises(InvalidInput, match="protect") as caught:
        check_properties({key: value})
    assert (caught.value.code, caught.value.name) == ("BAD_PROPERTY", key)
    others = {"delta.appendOnly": "false", "delta.logRetentionDuration": "interval 30 days", "appendOnly": "true"}
    assert check_properties(others) == others


def test_a_property_may_choose_the_format_of_a_new_table(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64())])
    made = tamis.create(tmp_path / "a", schema, properties={"tamis.format": "orc", "owner": "me"})
    assert (made.detail()["data_format"][0].as_py(), made.properties) == ("orc", {"owner": "me"})
    assert tamis.create(tmp_path / "b", schema, format="orc", properties={"tamis.format": "orc"}).properties == {}
    for chosen in (
        {"format": "orc", "properties": {"tamis.format": "vortex"}},
        {"properties": {"tamis.format": "csv"}},
    ):
        with pytest.raises(InvalidInput):
            tamis.create(tmp_path / "c", schema, **chosen)
