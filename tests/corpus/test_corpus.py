"""The filters that people type: none loses a row, each skips what it skipped before, or more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tests.corpus.filters import Filter, filters, kept, made, matching
from tests.corpus.tables import TABLES

Kept = dict[Filter, "np.ndarray[Any, np.dtype[np.bool_]]"]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kept]:
    """By table: which parts each of its filters keeps; all of them where it is refused."""
    home: Path = tmp_path_factory.mktemp("corpus")
    out: dict[str, Kept] = {}
    for table, (_, count, _, _) in TABLES.items():
        held = made(table, home)
        out[table] = {}
        for f in filters(table):
            try:
                out[table][f] = kept(held, f)
            except tamis.TamisError:
                assert not f.floor, f"{f} is refused now"
                out[table][f] = np.ones(count, dtype=np.bool_)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_filters_skip_what_they_skipped_before(judged: dict[str, Kept], table: str) -> None:
    less = [
        f"{f}: {int((~mask).sum())}, was {f.floor}" for f, mask in judged[table].items() if int((~mask).sum()) < f.floor
    ]
    assert less == []


@pytest.mark.spark
@pytest.mark.parametrize("table", TABLES)
def test_no_filter_loses_a_row(spark: Any, judged: dict[str, Kept], table: str) -> None:
    session = spark.newSession()
    session.conf.set(
        "spark.sql.codegen.wholeStage", "false"
    )  # hundreds of columns once: compiling would take longer than running
    found = matching(session, table)
    lost = [str(f) for (f, mask), match in zip(judged[table].items(), found, strict=True) if (match & ~mask).any()]
    assert lost == []
    assert sum(int(match.sum()) for match in found) > 100, "the filters find something"


def test_there_are_many_and_each_once() -> None:
    every = [(f.table, f.text, f.zone) for table in TABLES for f in filters(table)]
    assert len(every) == len(set(every)) >= 300


def test_tables_are_the_same_every_time() -> None:
    for make, _, _, _ in TABLES.values():
        assert repr(make(7).to_pydict()) == repr(make(7).to_pydict())
