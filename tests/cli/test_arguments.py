"""How the texts of a command line are read."""

from __future__ import annotations

import pytest
import typer

from tamis.cli.arguments import column_names, key_value_pairs, version_arguments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ()),
        ("", ()),
        ("a", ("a",)),
        ("a, b ,c", ("a", "b", "c")),
        ("`a,b`,c", ("a,b", "c")),
        ("`it``s`", ("it`s",)),
        ("body.user", ("body.user",)),
        ("`body.user`, a.`b.c`", ("`body.user`", "a.`b.c`")),
    ],
)
def test_names(text: str | None, expected: tuple[str, ...]) -> None:
    assert column_names(text) == expected


def test_names_of_whole_columns() -> None:
    assert column_names("`a.b`,c", whole=True) == ("a.b", "c")


def test_pairs() -> None:
    assert key_value_pairs(["a=b", "c=d=e", "f="], "--set") == {"a": "b", "c": "d=e", "f": ""}
    assert key_value_pairs(None, "--set") == {}


@pytest.mark.parametrize("text", ["a", "=b", ""])
def test_what_is_no_pair_is_a_usage_error(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="KEY=VALUE"):
        key_value_pairs([text], "--set")


def test_a_point_in_time() -> None:
    assert version_arguments(None, None) == {}
    assert version_arguments(0, None) == {"version": 0}
    assert version_arguments(None, "2026-01-01") == {"timestamp": "2026-01-01"}
    with pytest.raises(typer.BadParameter):
        version_arguments(1, "2026-01-01")


def test_a_storage_option_is_not_printed() -> None:
    """It may be a credential with the wrong separator."""
    with pytest.raises(typer.BadParameter, match="KEY=VALUE") as caught:
        key_value_pairs(["secret_access_key:pl4nted"], "--storage-option")
    assert "pl4nted" not in str(caught.value)


def test_read_options_are_one_in_any_case() -> None:
    """Spark's are; storage options and names of columns in quotes are not."""
    with pytest.raises(typer.BadParameter, match="SEP is given more than once"):
        key_value_pairs(["sep=,", "SEP=;"], "--read-option")


@pytest.mark.parametrize("option", ["--set", "--storage-option"])
def test_a_key_given_twice_is_a_usage_error(option: str) -> None:
    """Else the last one would count, in silence."""
    with pytest.raises(typer.BadParameter, match="price is given more than once") as caught:
        key_value_pairs(["price=pl4nted", " price =pl4nted"], option)
    assert "pl4nted" not in str(caught.value)
