"""How the texts of a command line are read."""

from __future__ import annotations

import pytest
import typer

from tamis.cli.arguments import names, pairs, point


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
    assert names(text) == expected


def test_names_of_whole_columns() -> None:
    assert names("`a.b`,c", whole=True) == ("a.b", "c")


def test_pairs() -> None:
    assert pairs(["a=b", "c=d=e", "f="], "--set") == {"a": "b", "c": "d=e", "f": ""}
    assert pairs(None, "--set") == {}


@pytest.mark.parametrize("text", ["a", "=b", ""])
def test_what_is_no_pair_is_a_usage_error(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="KEY=VALUE"):
        pairs([text], "--set")


def test_a_point_in_time() -> None:
    assert point(None, None) == {}
    assert point(0, None) == {"version": 0}
    assert point(None, "2026-01-01") == {"timestamp": "2026-01-01"}
    with pytest.raises(typer.BadParameter):
        point(1, "2026-01-01")


def test_a_storage_option_is_not_printed() -> None:
    """It may be a credential with the wrong separator."""
    with pytest.raises(typer.BadParameter, match="KEY=VALUE") as caught:
        pairs(["secret_access_key:pl4nted"], "--storage-option")
    assert "pl4nted" not in str(caught.value)
