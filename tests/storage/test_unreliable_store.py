"""An S3 that throttles, stalls, breaks off, expires and lies elsewhere: nothing is lost or doubled, and each is named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import tamis
from tamis.errors import StoreUnavailable, TamisError
from tamis.world import world
from tests.storage.fake_s3 import FakeS3, serve
from tests.storage.making import forget

PLACE = "s3://bucket/t"
ROWS = 40_000


class Unreliable(FakeS3):
    """Asks ``fault`` what to do with each request; an answer of False means that it was answered."""

    fault: ClassVar[Callable[[Any], bool]] = staticmethod(lambda _: True)
    seen: ClassVar[list[str]]

    def allowed(self) -> bool:
        self.seen.append(self.command)
        return super().allowed() and type(self).fault(self)

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        if self.close_connection:
            return
        super().answer(status, body, **headers)


@pytest.fixture
def s3() -> Iterator[tuple[dict[str, Any], type[Unreliable]]]:
    with serve(Unreliable) as (options, handler):
        handler.seen = []
        yield {**options, "max_retries": 5, "retry_timeout": 30}, handler


def set_fault(handler: type[Unreliable], fault: Callable[[Any], bool]) -> None:
    handler.fault = staticmethod(fault)


def table_of(options: dict[str, Any]) -> Any:
    table = tamis.create(PLACE, pa.schema({"id": pa.int64(), "s": pa.string()}), storage_options=options)
    table.append(rows_from(0))
    return table


def rows_from(start: int) -> pa.Table:
    ids = range(start, start + ROWS)
    return pa.table({"id": ids, "s": [f"text of row {n}" for n in ids]})


def ids_in(options: dict[str, Any]) -> list[int]:
    forget()
    found: list[int] = tamis.open(PLACE, storage_options=options).scan("s LIKE 'text%'").to_arrow()["id"].to_pylist()
    return sorted(found)


@pytest.mark.slow
def test_throttling_is_waited_out(s3: tuple[dict[str, Any], type[Unreliable]]) -> None:
    """Every second request is answered 503: each commit is made once, and each row is read once."""
    options, handler = s3
    throttled: list[str] = []

    def slow_down(request: Any) -> bool:
        if len(request.seen) % 2:
            throttled.append(request.command)
            request.refuse(503, "SlowDown")
            return False
        return True

    set_fault(handler, slow_down)
    table = table_of(options)
    assert table.append(rows_from(ROWS)).rows_inserted == ROWS
    assert ids_in(options) == list(range(2 * ROWS))
    assert table.version == 2
    assert {"GET", "PUT"} <= set(throttled)


def test_lasting_throttling_is_named(s3: tuple[dict[str, Any], type[Unreliable]]) -> None:
    options, handler = s3
    table = table_of({**options, "max_retries": 1})
    before = dict(handler.objects)
    set_fault(handler, lambda request: request.refuse(503, "SlowDown"))
    with pytest.raises(StoreUnavailable) as caught:
        table.append(rows_from(ROWS))
    assert caught.value.code == "STORE_UNAVAILABLE"
    assert "503" in str(caught.value)
    assert handler.objects == before
    set_fault(handler, lambda _: True)
    assert ids_in(options) == list(range(ROWS))


def test_answers_that_break_off_are_asked_for_again(s3: tuple[dict[str, Any], type[Unreliable]]) -> None:
    """Of every third data file's answer only half arrives: the rows are those of the table, or an error, never fewer rows."""
    options, handler = s3
    table_of(options)
    cut: list[str] = []

    def break_off(request: Any) -> bool:
        if request.command != "GET" or "/data/" not in request.path or len(request.seen) % 3:
            return True
        cut.append(request.path)
        data = request.objects[request.path.removeprefix("/bucket/")]
        first, last = (int(n) for n in request.headers["Range"].removeprefix("bytes=").split("-"))
        part = data[first : last + 1]
        request.send_response(206)
        request.send_header("Content-Length", str(len(part)))
        request.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        request.send_header("ETag", '"e"')
        request.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        request.end_headers()
        request.wfile.write(part[: len(part) // 2])
        request.close_connection = True
        return False

    set_fault(handler, break_off)
    results: list[object] = []
    for _ in range(6):
        try:
            results.append(ids_in(options))
        except TamisError as error:
            results.append(error.code)
    assert cut
    assert all(result in ("STORE_UNAVAILABLE", list(range(ROWS))) for result in results)
    assert list(range(ROWS)) in results


def test_a_stalled_answer_is_given_up(s3: tuple[dict[str, Any], type[Unreliable]]) -> None:
    """``timeout`` bounds a request; the retry is answered."""
    options, handler = s3
    table_of(options)
    stalled = threading.Event()
    go_on = threading.Event()

    def stall(request: Any) -> bool:
        if request.command == "GET" and "/data/" in request.path and not stalled.is_set():
            stalled.set()
            go_on.wait(60)
            request.close_connection = True
        return True

    set_fault(handler, stall)
    begun = world().monotonic()
    try:
        assert ids_in({**options, "timeout": "2s"}) == list(range(ROWS))
        assert stalled.is_set()
        assert not go_on.is_set()
        assert world().monotonic() - begun < 60  # the answer never came
    finally:
        go_on.set()


XML = '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
REFUSALS = [
    (400, "ExpiredToken", "The provided token has expired.", "CREDENTIALS_EXPIRED", "new ones"),
    (403, "ExpiredToken", "The provided token has expired.", "CREDENTIALS_EXPIRED", "new ones"),
    (400, "AuthorizationHeaderMalformed", "the region 'eu-west-1' is wrong; expecting 'eu-central-1'", "WRONG_REGION", "region in storage_options to eu-central-1"),
    (301, "PermanentRedirect", "Use the specified endpoint.", "WRONG_REGION", "region in storage_options"),
    (403, "AccessDenied", "Access Denied", "ACCESS_DENIED", "credentials"),
]  # fmt: skip


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(("status", "code", "message", "expected", "remedy"), REFUSALS)
def test_a_refusal_is_named(
    s3: tuple[dict[str, Any], type[Unreliable]], status: int, code: str, message: str, expected: str, remedy: str
) -> None:
    """From one request on, as credentials expire: the append fails by name, leaves no commit, and works with new ones."""
    options, handler = s3
    table = table_of(options)

    def refuse(request: Any) -> bool:
        if "Credential=new/" not in request.headers["Authorization"]:
            request.answer(status, XML.format(code=code, message=message).encode())
            return False
        return True

    set_fault(handler, refuse)
    for call in (
        lambda: table.append(rows_from(ROWS)),
        lambda: tamis.open(PLACE, storage_options=options),
        lambda: tamis.create("s3://bucket/u", storage_options=options),
    ):
        forget()
        with pytest.raises(StoreUnavailable) as caught:
            call()
        assert caught.value.code == expected
        assert remedy in caught.value.remedy
        assert "s3://bucket/" in caught.value.name
        assert "secret-value" not in str(caught.value)
    renewed = {**options, "access_key_id": "new"}
    assert ids_in(renewed) == list(range(ROWS))
    forget()
    assert tamis.open(PLACE, storage_options=renewed).append(rows_from(ROWS)).rows_inserted == ROWS
    assert ids_in(renewed) == list(range(2 * ROWS))


def test_a_server_that_ignores_conditions_is_refused(s3: tuple[dict[str, Any], type[Unreliable]]) -> None:
    """``tamis.create`` finds out, leaves nothing behind, and says which store it is."""
    options, handler = s3

    def ignore(request: Any) -> bool:
        del request.headers["If-None-Match"]
        return True

    set_fault(handler, ignore)
    with pytest.raises(StoreUnavailable) as caught:
        tamis.create(PLACE, pa.schema({"id": pa.int64()}), storage_options=options)
    assert (caught.value.code, caught.value.name) == ("NOT_SUPPORTED", PLACE)
    assert "conditional writes" in caught.value.remedy
    assert handler.objects == {}
