"""Reads that fail half-way, are short, garbled or slow, at every request of a scan and in every format: the right rows, or an error that names part and cause."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import obstore.exceptions
import pyarrow as pa
import pytest

import tamis
from tamis.core.expr import conjuncts_of, parse_predicate
from tamis.core.types import LONG, STRING, Field, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.engine.part_reader import ReadCounters, ReadSpec, lazy_reader, read_part
from tamis.errors import CorruptData, StoreUnavailable, TamisError
from tamis.storage.files import PartRef, sealed_reader
from tamis.storage.files.parquet import footer
from tamis.storage.files.vortex import vortex_part
from tamis.storage.object_store import Store, open_store
from tamis.storage.object_store.lru_cache import LruCache
from tamis.world import world
from tests.files.parts import write_part
from tests.storage.fake_s3 import FakeS3, serve

FORMATS = ("parquet", "vortex", "orc")
SCHEMA = Schema((Field("k", LONG, id=1), Field("n", LONG, id=2), Field("s", STRING, id=3)))
ROWS = 12_000
NOISE = np.random.default_rng(5).integers(0, 2**60, ROWS)
DATA = pa.RecordBatch.from_arrays(
    [np.arange(ROWS) % 4_000, NOISE, pa.array(map(str, NOISE))], schema=to_arrow_schema(SCHEMA)
)
TEXT = "k IN (7, 2500)"
EXPECTED = DATA.filter(pa.array(np.isin(np.arange(ROWS) % 4_000, (7, 2500))))
SPEC = ReadSpec("memory://faults", SCHEMA, {0: SCHEMA}, conjuncts=conjuncts_of(parse_predicate(TEXT, SCHEMA)))

Fault = Callable[[list[memoryview]], list[memoryview]]


def reset(_: list[memoryview]) -> list[memoryview]:
    raise obstore.exceptions.GenericError("connection reset by peer")


def short(chunks: list[memoryview]) -> list[memoryview]:
    return [*chunks[:-1], chunks[-1][:-1]]


def garbled(chunks: list[memoryview]) -> list[memoryview]:
    """A bit in every 64 bytes."""
    found = [np.frombuffer(c, np.uint8).copy() for c in chunks]
    for chunk in found:
        chunk[::64] ^= 4
    return [memoryview(c.tobytes()) for c in found]


class Faulty(Store):
    """Reads of data files go wrong from the ``first`` on, ``times`` times."""

    def __init__(self, fault: Fault | None, first: int = 0, times: int = 0) -> None:
        inner = open_store(SPEC.url)
        super().__init__(inner.location, inner.options)
        self.fault, self.first, self.times, self.calls = fault, first, times, [0]

    def _run(self, action: str, path: str, call: Callable[[Any, str], Any], *, create: bool = False) -> Any:
        at = self.calls[0]
        self.calls[0] += 1
        if self.fault is None or not self.first <= at < self.first + self.times:
            return super()._run(action, path, call, create=create)
        fault = self.fault
        return super()._run(action, path, lambda store, key: fault(call(store, key)), create=create)


@pytest.fixture(scope="module")
def parts() -> dict[str, PartRef]:
    store = open_store(SPEC.url)
    blocks = [DATA.slice(at, 4_000) for at in range(0, ROWS, 4_000)]
    return {form: write_part(store, SCHEMA, blocks, f"part-{form}", form=form) for form in FORMATS}


@pytest.fixture
def read(parts: dict[str, PartRef], monkeypatch: pytest.MonkeyPatch) -> Callable[..., pa.Table]:
    """Reads a part through a store, as a process does that has not seen it before."""

    def run(form: str, mode: str, store: Faulty) -> pa.Table:
        monkeypatch.setattr(footer, "_cache", LruCache(2**20))
        monkeypatch.setattr(sealed_reader, "_seals", LruCache(2**20))
        monkeypatch.setattr(vortex_part, "_footers", LruCache(8))
        monkeypatch.setattr(lazy_reader, "open_store", lambda *_: store)
        return pa.Table.from_batches(
            read_part(parts[form], replace(SPEC, lazy=mode), ReadCounters()), to_arrow_schema(SCHEMA)
        )

    return run


@pytest.mark.parametrize("mode", ["on", "off"])
@pytest.mark.parametrize("form", FORMATS)
def test_one_fault_at_every_request(
    form: str, mode: str, read: Callable[..., pa.Table], parts: dict[str, PartRef]
) -> None:
    fine = Faulty(None)
    assert read(form, mode, fine).equals(pa.table(EXPECTED))
    assert fine.calls[0] >= 2
    for at in range(fine.calls[0]):
        for fault in (short, garbled):  # asked for once more
            assert read(form, mode, Faulty(fault, at, 1)).equals(pa.table(EXPECTED)), (fault, at)
        with pytest.raises(
            StoreUnavailable, match="connection reset"
        ) as raised:  # the store has tried that again already
            read(form, mode, Faulty(reset, at, 1))
        assert named(raised.value, parts[form])


@pytest.mark.parametrize("mode", ["on", "off"])
@pytest.mark.parametrize("form", FORMATS)
def test_faults_that_stay(form: str, mode: str, read: Callable[..., pa.Table], parts: dict[str, PartRef]) -> None:
    fine = Faulty(None)
    read(form, mode, fine)
    for at in range(fine.calls[0]):
        for fault in (short, garbled):
            with pytest.raises(CorruptData) as raised:
                read(form, mode, Faulty(fault, at, 10**6))
            assert named(raised.value, parts[form])
            assert fault is garbled or raised.value.code == "TRUNCATED"


def named(error: TamisError, ref: PartRef) -> bool:
    return (
        all(name in error.message for name in (ref.part_id, ref.path)) and error.name == ref.path and bool(error.remedy)
    )


class Rough(FakeS3):
    """Answers to reads of data files go wrong ``left`` times."""

    how: str
    left: int

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        with self.lock:
            rough = wanted is not None and "/data/" in self.path and type(self).left > 0
            type(self).left -= rough
        if not rough:
            super().do_GET()
            return
        key, _ = self.target()
        first, last = map(int, str(wanted).removeprefix("bytes=").split("-"))
        body, half = self.objects[key][first : last + 1], (last + 1 - first) // 2
        self.close_connection = True
        match self.how:
            case "refused":
                self.refuse(503, "SlowDown")
            case "slow":
                world().sleep(4)
            case "half":  # the connection ends within the body
                self.head(first, last, len(body))
                self.wfile.write(body[:half])
            case "short":
                self.head(first, first + half - 1, half)
                self.wfile.write(body[:half])

    def head(self, first: int, last: int, length: int) -> None:
        self.send_response(206)
        for name, value in {
            "Content-Range": f"bytes {first}-{last}/{10**9}",
            "ETag": '"e"',
            "Content-Length": str(length),
        }.items():
            self.send_header(name, value)
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()


@pytest.fixture(scope="module")
def tables() -> Iterator[tuple[type[Rough], dict[str, Any]]]:
    """A table of each format on a server whose reads can be made to go wrong; a request may take 2 s, and is tried once more."""
    with serve(Rough) as (options, handler):
        handler.how, handler.left = "", 0
        made = {}
        for form in FORMATS:
            made[form] = tamis.create(
                f"s3://bucket/{form}", DATA.schema, format=form, storage_options={**options, "timeout": "2s"}
            )
            made[form].append(pa.table(DATA))
        yield handler, made


@pytest.mark.parametrize(("form", "how"), [*product(FORMATS, ["refused", "half", "short"]), ("parquet", "slow")])
@pytest.mark.push_cases(5)
def test_a_rough_store(form: str, how: str, tables: tuple[type[Rough], dict[str, Any]]) -> None:
    """Once: the rows. For ever: an error within the deadlines that were set, naming the part."""
    handler, made = tables
    handler.how, handler.left = how, 1
    assert made[form].scan(TEXT).to_arrow().equals(pa.table(EXPECTED))
    handler.left = 10**6
    start = world().monotonic()
    with pytest.raises(CorruptData if how == "short" else StoreUnavailable) as raised:
        made[form].scan(TEXT).to_arrow()
    handler.left = 0
    assert world().monotonic() - start < 30
    (ref,) = made[form].scan().plan().parts
    assert named(raised.value, ref)
