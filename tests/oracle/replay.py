"""What printed scripts import: ``show`` makes the tables, asks, and says what differs."""

from __future__ import annotations

import datetime  # noqa: ICN001  # as repr writes it
import tempfile
from decimal import Decimal
from pathlib import Path

from tests.oracle.case import Case
from tests.oracle.history import (
    Add,
    Adopt,
    Append,
    Clause,
    Compact,
    Create,
    DamageIndex,
    Delete,
    Drop,
    ForgetSegments,
    Format,
    Index,
    Merge,
    Overwrite,
    Properties,
    Rename,
    Repair,
    Restore,
    Update,
    Widen,
)
from tests.oracle.libraries import LibraryQuery
from tests.oracle.query import Query

nan, inf = float("nan"), float("inf")

__all__ = [
    "Add", "Adopt", "Append", "Case", "Clause", "Compact", "Create", "DamageIndex", "Decimal", "Delete", "Drop", "ForgetSegments", "Format", "Index", "LibraryQuery", "Merge", "Overwrite",
    "Properties", "Query", "Rename", "Repair", "Restore", "Update", "Widen", "datetime", "inf", "nan", "show",
]  # fmt: skip


def show(case: Case) -> None:
    from tests.oracle.lab import Lab

    with tempfile.TemporaryDirectory() as home:
        lab = Lab(Path(home))
        print(case.replay(lab) or "no difference")
        lab.spark.stop()
