"""Names that may be folders, and names that may not."""

from __future__ import annotations

import pytest

from tamis.errors import InvalidInput
from tamis.spark.catalog.table_names import relative_path
from tamis.spark.sql.procedure import table_name


@pytest.mark.parametrize(
    "name", ["t", "T", "my table", "it's", 'say "hi"', "größe", "表", "a.b", "100%", "a#b?c", "x" * 200]
)
def test_a_name_is_its_own_folder(name: str) -> None:
    assert relative_path(("db", name)) == f"db/{name}"


@pytest.mark.parametrize(
    "name",
    ["", " ", " t", "t ", ".", "..", "a/b", "a\\b", "../t", ".hidden", "_tamis", "a\nb", "a\0b", "x" * 201, "é" * 101],
)
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        relative_path(("db", name))
    assert caught.value.code == "BAD_NAME"
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("t", ("t",)),
        ("db.t", ("db", "t")),
        ("db.`a.b`", ("db", "a.b")),
        ("`d b`.t", ("d b", "t")),
        ("`a`.`b`.c", ("a", "b", "c")),
    ],
)
def test_procedures_read_names_as_sql_does(text: str, parts: tuple[str, ...]) -> None:
    assert table_name(text) == parts
