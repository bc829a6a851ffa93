"""Storage options: one set of names everywhere, and values that nothing shows."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from obstore.store import AzureStore, GCSStore, S3Store
from typer.testing import CliRunner

import tamis
from tamis.cli.app import program
from tamis.core.types import Schema
from tamis.engine.part_reader import ReadSpec
from tamis.engine.part_writer.write_part import WriteSpec
from tamis.errors import InvalidInput, TamisError
from tamis.storage.object_store import open_store
from tamis.storage.object_store.location import locate_store
from tamis.storage.object_store.storage_options import (
    AZURE,
    CLIENT,
    GCS,
    NAMES,
    PREFIXES,
    S3,
    canonical_option,
    is_storage_option,
    redact_values,
)
from tamis.storage.object_store.store_backends import connect_store
from tamis.world import SeededWorld, use
from tests.storage.fake_s3 import FakeS3, serve

SECRET = "pl4nted-s3cret"
PLACE = "s3://bucket/lake/t"


@pytest.fixture
def s3() -> Iterator[tuple[dict[str, Any], type[FakeS3]]]:
    with serve(FakeS3) as server:
        yield server


def shown(call: Callable[[], Any]) -> str:
    """Everything that a failed call shows: text, repr and traceback with causes, and what survives pickling."""
    with pytest.raises(TamisError) as caught:
        call()
    error = caught.value
    sent = pickle.loads(pickle.dumps(error))  # of this line
    return "\n".join([str(error), repr(error), repr(vars(error)), str(sent), *traceback.format_exception(error)])


def answer(store: Any, url: str, name: str) -> str:
    try:
        return repr(store(url, **{name: "x"}))
    except Exception as error:
        return str(error)


@pytest.mark.parametrize(
    ("store", "url", "names"), [(S3Store, "b", S3), (GCSStore, "b", GCS), (AzureStore, "b", AZURE)]
)
def test_the_client_knows_every_name(store: Any, url: str, names: dict[str, str]) -> None:
    """A value may be refused, a name not."""
    for name in (*names, *CLIENT):
        assert "is not valid for store" not in answer(store, url, name), name
    assert "is not valid for store" in answer(store, url, "acces_key")


def test_every_name_is_hidden_with_and_without_a_prefix() -> None:
    for name in NAMES:
        assert is_storage_option(name)
        assert is_storage_option(name.upper())
        assert all(is_storage_option(prefix + name) for prefix in PREFIXES)
    assert not any(map(is_storage_option, ["versionAsOf", "path", "tamis.read.lazy", "maxFilesPerTrigger", "keyed"]))
    assert canonical_option("AWS_TOKEN") == canonical_option("session_token") == "session_token"


@pytest.mark.parametrize(
    ("options", "code", "name", "remedy"),
    [
        ({"secret_acces_key": SECRET}, "UNKNOWN_OPTION", "secret_acces_key", "secret_access_key?"),
        ({"allow_http": SECRET}, "BAD_OPTION", "allow_http", "Correct"),
        ({"timeout": SECRET}, "BAD_OPTION", "timeout", "Correct"),
        ({"max_retries": SECRET}, "BAD_OPTION", "max_retries", "number"),
        ({"access_key_id": [SECRET]}, "BAD_OPTION", "access_key_id", "text"),
        ({1: SECRET}, "UNKNOWN_OPTION", "1", "Options are"),
        ({"region": "a", "secret_access_key": SECRET}, "BAD_OPTION", "region, secret_access_key", "Correct"),
    ],
)
def test_a_bad_option_is_named_without_its_value(options: dict[str, Any], code: str, name: str, remedy: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_store(PLACE, options)
    assert (caught.value.code, caught.value.name) == (code, name)
    assert remedy in caught.value.remedy
    assert SECRET not in shown(lambda: open_store(PLACE, options))


def test_names_may_be_in_capitals_and_prefixed(s3: tuple[dict[str, Any], type[FakeS3]]) -> None:
    given = {("AWS_" + key.upper() if key in S3 else key.upper()): value for key, value in s3[0].items()}
    assert {"AWS_ACCESS_KEY_ID", "MAX_RETRIES"} <= set(given)
    tamis.create(PLACE, pa.schema([("a", pa.int64())]), storage_options=given)


@pytest.mark.parametrize("given", ["environment", "flags"])
def test_the_command_line_reads_flags_and_the_environment(
    s3: tuple[dict[str, Any], type[FakeS3]], given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tamis.create(PLACE, pa.schema([("a", pa.int64())]), storage_options=s3[0]).append(pa.table({"a": [7]}))
    command = ["query", PLACE, "--json"]
    for key, value in s3[0].items():
        if given == "flags":
            command += ["--storage-option", f"{key}={str(value).lower()}"]
        elif key in {**S3, **CLIENT}:
            monkeypatch.setenv(f"AWS_{key.upper()}", str(value).lower())
    done = CliRunner().invoke(program, command)
    assert done.exit_code == 0, done.output
    assert '"a": 7' in done.stdout


def test_a_local_folder_takes_no_options(tmp_path: Path) -> None:
    text = shown(lambda: tamis.open(tmp_path, storage_options={"secret_access_key": SECRET}))
    assert "UNKNOWN_OPTION" in text
    assert SECRET not in text


def test_no_error_of_a_store_shows_a_value(
    s3: tuple[dict[str, Any], type[FakeS3]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Refused credentials, an address where nobody answers, and a store that repeats in its answer what it got."""

    def repeats(handler: FakeS3) -> None:
        handler.answer(403, f"<Error><AWSAccessKeyId>{SECRET}-id</AWSAccessKeyId>{SECRET}</Error>".encode())

    caplog.set_level(logging.DEBUG)
    given = {**s3[0], "access_key_id": f"{SECRET}-id", "secret_access_key": SECRET, "session_token": f"{SECRET}-token"}
    monkeypatch.setattr(s3[1], "do_GET", repeats, raising=False)
    refused = shown(lambda: tamis.open(PLACE, storage_options=given))
    nobody = shown(lambda: tamis.open(PLACE, storage_options={**given, "endpoint": f"http://127.0.0.1:1/{SECRET}"}))
    assert "ACCESS_DENIED" in refused
    assert "STORE_UNAVAILABLE" in nobody
    assert PLACE in refused
    for text in (refused, nobody, caplog.text):
        assert SECRET not in text
        assert s3[0]["endpoint"] not in text


def test_values_are_replaced_by_their_names() -> None:
    options = {"secret_access_key": SECRET, "region": "eu-west-1", "allow_http": True, "timeout": "5s"}
    text = f"<AWSAccessKeyId>AKIA</AWSAccessKeyId> {SECRET} True 5s in eu-west-1 at https://u:p@host/b?sig=x, twice"
    assert redact_values(text, options) == (
        "<AWSAccessKeyId>…</AWSAccessKeyId> <secret_access_key> True 5s in <region> at …, twice"
    )


def test_no_repr_shows_a_value(s3: tuple[dict[str, Any], type[FakeS3]]) -> None:
    given = {**s3[0], "secret_access_key": SECRET}
    table = tamis.create(PLACE, pa.schema([("a", pa.int64())]), storage_options=given)
    table.append(pa.table({"a": [1, 2]}))
    scan = table.scan("a = 1")
    rows = scan.to_arrow()
    held = [table, table.store, table.snapshot, scan, scan.explain(), scan.plan(), rows, tamis.reports()[0]]
    held += [table.detail().to_pylist(), table.history().to_pylist(), table.changes(0), table.stream_writer()]
    held += [ReadSpec(PLACE, Schema(()), {}, given), WriteSpec(PLACE, Schema(()), given)]
    for what in held:
        text = f"{what!r} {what}" + (what._repr_html_() if hasattr(what, "_repr_html_") else "")
        assert SECRET not in text, type(what)
        assert s3[0]["endpoint"] not in text, type(what)


def test_credentials_in_a_url_are_refused_unseen() -> None:
    text = shown(lambda: open_store(f"s3n://key:{SECRET}@bucket/t"))
    assert "BAD_PATH" in text
    assert "@bucket" in text
    assert SECRET not in text


class Masked(str):
    """A secret that does not show itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"

    def __str__(self) -> str:
        return "***"


def test_a_connection_is_shared_until_something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    place, options = locate_store("s3://bucket/t"), {"region": "eu-west-1", "max_retries": 1}
    first = connect_store(place, options)
    assert connect_store(locate_store("s3://bucket/t"), dict(reversed(options.items()))) is first
    assert connect_store(locate_store("s3://bucket/u"), options) is not first
    assert connect_store(place, options | {"max_retries": "1"}) is first, "it means the same"
    assert connect_store(place, options | {"max_retries": 2}) is not first
    secrets = [
        connect_store(place, options | {"access_key_id": "a", "secret_access_key": Masked(text)})
        for text in ("one", "two")
    ]
    assert [store.config["secret_access_key"] for store in secrets] == ["one", "two"]
    monkeypatch.setenv("AWS_SESSION_TOKEN", "another")
    assert connect_store(place, options) is not first
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    monkeypatch.setenv("UNRELATED", "another")
    assert connect_store(place, options) is first


def test_a_connection_is_made_again_after_some_minutes() -> None:
    """Files of credentials may have changed."""
    place, clock = locate_store("s3://bucket/t"), SeededWorld(1)
    with use(clock):
        first = connect_store(place, {})
        clock.sleep(290)
        assert connect_store(place, {}) is first
        clock.sleep(20)
        assert connect_store(place, {}) is not first
