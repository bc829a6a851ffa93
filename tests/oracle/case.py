"""One failure: all that is needed to see it again, printed as a script that can be run."""

from __future__ import annotations

import pprint
from dataclasses import dataclass, field
from typing import Any

from tests.oracle import history as h
from tests.oracle.embedded import misread, truths
from tests.oracle.judges import Judge, compare
from tests.oracle.lab import Built, Lab, StepFailed
from tests.oracle.libraries import LibraryQuery, library_rows, misread_by
from tests.oracle.query import Query
from tests.oracle.settings import Settings, settled


@dataclass(frozen=True)
class Case:
    """``query`` over the tables, or an embedded ``predicate`` or a ``library``'s query over the first. Where there is none, the table itself differs."""

    histories: tuple[h.History, ...]
    settings: Settings = field(default_factory=dict)
    query: Query | None = None
    predicate: str | None = None
    library: LibraryQuery | None = None
    options: dict[str, Any] = field(default_factory=dict)
    limit: int = 3

    def check(self, lab: Lab, tables: list[Built]) -> str | None:
        """What is wrong on tables that have been built; None where nothing is."""
        with settled(lab.spark, self.settings):
            if self.query is not None:
                return Judge(lab).differs(self.query, tables)
            if self.library is not None:
                return misread_by(tables[0], self.library, library_rows(lab, tables[0]))
            if self.predicate is not None:
                wanted = truths(lab.spark, tables[0], [self.predicate])
                return (
                    None
                    if wanted is None
                    else misread(tables[0].open(), self.predicate, wanted[0], self.options, self.limit)
                )
        return contents(lab, tables[0])

    def replay(self, lab: Lab) -> str | None:
        """What is wrong on tables made anew; None where nothing is."""
        tables: list[Built] = []
        try:
            for history in self.histories:
                tables.append(lab.build(history))
            return self.check(lab, tables)
        except StepFailed as failed:
            return str(failed) if self.query is None and self.predicate is None and self.library is None else None
        except Exception:
            return None  # no table: a history that was cut too far
        finally:
            for built in tables:
                lab.forget(built)

    def script(self, seen: str) -> str:
        """Python that shows the difference."""
        lines = ["from tests.oracle.replay import *", "", f"# {seen[:600]}".replace("\n", " "), "show(Case("]
        lines += [f"    histories={pprint.pformat(self.histories, width=150, compact=True, sort_dicts=False)},"]
        lines += [f"    settings={self.settings!r},"] if self.settings else []
        if self.query is not None:
            lines += [f"    query={self.query!r},"]
        if self.library is not None:
            lines += [f"    library={self.library!r},"]
        if self.predicate is not None:
            lines += [f"    predicate={self.predicate!r}, options={self.options!r}, limit={self.limit},"]
        return "\n".join([*lines, "))"])


def contents(lab: Lab, built: Built) -> str | None:
    """Whether the table holds the model's rows, read by Spark."""
    columns = ", ".join(built.columns)
    text = f"SELECT {columns} FROM oracle_t0"
    judge = Judge(lab)
    plain, _ = judge.answers(Query(text), [built], ours=False)
    ours, _ = judge.answers(Query(text), [built], ours=True)
    return compare(Query(text), ours, plain, None)
