"""The tree of errors: its shape, its codes, and that errors survive a process border."""

from __future__ import annotations

import pickle

import pytest

import tamis
from tamis import errors

BUILTIN = {
    "NotFound": LookupError,
    "AlreadyExists": FileExistsError,
    "Conflict": RuntimeError,
    "SchemaMismatch": ValueError,
    "SchemaFenced": RuntimeError,
    "IncompatibleSchema": ValueError,
    "InvalidInput": ValueError,
    "CorruptData": OSError,
    "StoreUnavailable": ConnectionError,
}


@pytest.mark.parametrize("name", BUILTIN)
def test_each_category_is_also_a_builtin(name: str) -> None:
    kind = getattr(tamis, name)
    assert issubclass(kind, BUILTIN[name])
    assert issubclass(kind, tamis.TamisError)
    error = kind("Nothing at 'x'.", name="x", remedy="Look elsewhere.")
    assert str(error) == f"[{kind.default_code}] Nothing at 'x'. Look elsewhere."


def test_no_category_is_missing_here() -> None:
    found = {n for n, v in vars(errors).items() if isinstance(v, type) and issubclass(v, tamis.TamisError)} - {
        "TamisError"
    }
    assert found == set(BUILTIN)


def test_an_error_survives_pickling_whole() -> None:
    error = errors.SchemaMismatch("No.", code="X", name="t", remedy="Do.", current_id=4, schema="s")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is errors.SchemaMismatch
    assert (again.code, again.name, again.remedy, again.current_id, again.schema) == ("X", "t", "Do.", 4, "s")
