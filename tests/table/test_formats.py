"""One table, whatever its parts are made of."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Operation, Proposal, commit, load
from tamis.storage.files.vortex import vortex_library
from tamis.storage.object_store import open_store

FORMATS = ["parquet", "vortex", "orc"]
ROWS = pa.table(
    {
        "n": pa.array(range(1000), pa.int64()),
        "s": [f"row {i}" for i in range(1000)],
        "at": pa.array(
            [dt.datetime(1, 1, 1) + dt.timedelta(days=3_000 * i) for i in range(1000)], pa.timestamp("us", tz="UTC")
        ),
        "tags": [["a"] * (i % 3) for i in range(1000)],
        "who": [{"id": i, "name": str(i) if i % 2 else None} if i % 7 else None for i in range(1000)],
    }
)
FILTER = "n % 10 = 3 AND at < timestamp'2000-01-01' OR who.id = 8"


@pytest.mark.parametrize("form", FORMATS)
def test_rows_of_every_format(tmp_path: Path, form: str) -> None:
    table = tamis.create(tmp_path, ROWS.schema, format=form)
    table.append(ROWS)
    assert [p.suffix for p in (tmp_path / "data").iterdir()] == [f".{form}"]
    assert table.scan().to_arrow().equals(ROWS)
    found = table.scan(FILTER).to_arrow()
    assert found["n"].to_pylist() == [i for i in range(1000) if (i % 10 == 3 and 3_000 * i < 730_119) or (i == 8)]
    assert tamis.open(tmp_path).scan("n = 2000").plan().parts[:] is not None


def test_parts_of_several_formats_in_one_table(tmp_path: Path) -> None:
    table = tamis.create(tmp_path, ROWS.schema)
    for form in FORMATS:
        store = open_store(tmp_path)
        before = load(store)
        commit(store, Proposal(Operation("SET FORMAT", {}), before.version, head=replace(before.head, format=form)))
        tamis.open(tmp_path).append(ROWS)
    everything = tamis.open(tmp_path).scan(FILTER, ("n", "s", "who"))
    one = table.scan(FILTER, ("n", "s", "who"), version=2).to_arrow()
    assert everything.to_arrow().equals(pa.concat_tables([one] * 3))
    assert sorted(p.suffix for p in (tmp_path / "data").iterdir()) == [".orc", ".parquet", ".vortex"]


def test_a_type_that_a_format_cannot_hold_is_refused_by_name(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int64()), ("nothing", pa.struct([]))])
    with pytest.raises(InvalidInput, match="nothing") as raised:
        tamis.create(tmp_path / "a", schema, format="orc")
    assert raised.value.code == "UNSUPPORTED_TYPE"
    assert not (tmp_path / "a" / "_tamis" / "log").exists()


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "vortex", None)
    with pytest.raises(InvalidInput, match=r"vortex-data") as raised:
        tamis.create(tmp_path, ROWS.schema, format="vortex")
    assert (raised.value.code, "tamis[vortex]" in raised.value.remedy) == ("MISSING_PACKAGE", True)
    with pytest.raises(InvalidInput):
        vortex_library.import_vortex()
