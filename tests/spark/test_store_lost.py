"""The driver loses the store in the middle of a statement of Spark SQL, before each of its writes and after, and for good: the rows are those of before or of after, the statement
can be given again, and what was left lying goes with the next vacuum."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.conftest import Lake
from tests.storage.making import forget

import tamis
from tamis.errors import StoreUnavailable
from tamis.storage.object_store import Store

STATEMENTS = {
    "insert": "INSERT INTO lake.db.t SELECT id, 1 FROM range(100, 110)",
    "replace where": "INSERT INTO lake.db.t REPLACE WHERE id < 15 SELECT id, 2 FROM range(5)",
    "delete": "DELETE FROM lake.db.t WHERE id % 10 = 3",
    "delete by a job": "DELETE FROM lake.db.t WHERE id IN (SELECT id + 12 FROM range(3))",
    "update": "UPDATE lake.db.t SET n = n + 1 WHERE id % 10 = 4",
    "merge": "MERGE INTO lake.db.t t USING (SELECT id + 25 AS id, 9 AS n FROM range(10)) s ON t.id = s.id "
    "WHEN MATCHED AND t.id = 26 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "replace": "CREATE OR REPLACE TABLE lake.db.t USING tamis AS SELECT id, 3 AS n FROM range(5)",
    "compact": "CALL lake.system.compact(table => 'db.t')",
    "restore": "CALL lake.system.restore(table => 'db.t', version => 2)",
    "create index": "CALL lake.system.create_index(table => 'db.t', index => 'by_n', columns => 'n')",
    "vacuum": "CALL lake.system.vacuum(table => 'db.t', retention => '0s', below_retention => true, dry_run => false)",
}
UPKEEP = {"compact", "create index", "vacuum"}


@pytest.fixture
def grown(lake: Lake) -> Lake:
    """Three parts, an index, deleted rows, and what a compaction of other rows left behind."""
    lake.sql("CREATE TABLE lake.db.t (id BIGINT, n INT) USING tamis CLUSTER BY (id)")
    for first in (0, 10, 20):
        lake.sql(f"INSERT INTO lake.db.t SELECT id, 0 FROM range({first}, {first + 10})")
    of = tamis.open(lake.folder / "db" / "t")
    of.create_index("by_id", ["id"])
    of.delete("id IN (3, 17)")
    shutil.copytree(lake.folder / "db" / "t", lake.folder / "db" / "master")
    return lake


class Losing:
    """``Store._run`` that answers no more from moment ``at`` on: moment 2n is before object number n is written or removed, 2n + 1 after its first call, which may be its only one."""

    def __init__(self, at: int) -> None:
        self.at, self.gone = at, False
        self._objects, self._last = -1, ""
        self._plain = Store._run

    def __get__(self, store: Store, kind: type) -> Callable[..., Any]:
        return functools.partial(self.run, store)

    def run(self, store: Store, action: str, path: str, call: Any, *, create: bool = False) -> Any:
        begins = action in {"write", "delete"} and path != self._last
        if begins:
            self._objects, self._last = self._objects + 1, path
        self.gone = self.gone or (begins and self.at == 2 * self._objects)
        if not self.gone:
            found = self._plain(store, action, path, call, create=create)
            self.gone = begins and self.at == 2 * self._objects + 1
        if self.gone:
            raise StoreUnavailable(f"planned: {path}")
        return found


def seen(lake: Lake) -> list[tuple[Any, ...]]:
    rows = sorted(lake.rows("SELECT id, n FROM lake.db.t"))
    assert (
        sorted(map(tuple, (r.values() for r in tamis.open(lake.folder / "db" / "t").scan().to_arrow().to_pylist())))
        == rows
    )
    return rows


def anew(lake: Lake) -> None:
    shutil.rmtree(lake.folder / "db" / "t")
    shutil.copytree(lake.folder / "db" / "master", lake.folder / "db" / "t")
    forget()


@pytest.mark.nightly
@pytest.mark.parametrize("verb", STATEMENTS)
def test_lost_at_every_write(verb: str, grown: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    statement, before = STATEMENTS[verb], seen(grown)
    grown.sql(statement).collect()
    done = seen(grown)
    assert (done == before) == (verb in UPKEEP)
    landed: list[bool] = []
    outlived = False
    while not outlived:
        anew(grown)
        losing, message = Losing(len(landed)), ""
        with monkeypatch.context() as patched:
            patched.setattr(Store, "_run", losing)
            try:
                grown.sql(statement).collect()
            except Exception as error:
                message = str(error)
        outlived = not losing.gone
        assert not message or any(
            part in message for part in ("planned: ", "[COMMIT_UNKNOWN]", "[INDEX_BUILD_FAILED]")
        ), message
        forget()
        found = seen(grown)
        assert found in (before, done), f"lost at moment {losing.at}"
        landed.append(found == done)
        if found != done:
            grown.sql(statement).collect()
            assert seen(grown) == done
        of = tamis.open(grown.folder / "db" / "t")
        of.vacuum("0s", dry_run=False, below_retention=True)
        live = set(of.refresh().snapshot.parts(None)["path"].to_pylist())
        assert {e.path for e in of.store.list("data")} == live
        assert of.verify().ok
    assert len(landed) > 2, "it writes nothing"
    assert landed[-1]
    if verb not in UPKEEP:
        assert not landed[0]
        assert landed == sorted(landed), "what has landed stays"
