"""Paths and URLs: what they mean, and what cannot be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.errors import InvalidInput
from tamis.storage.object_store.location import locate_store

GOOD = [
    ("/data/t", "file", "", "/data/t"),
    ("/data/../data/./t/", "file", "", "/data/t"),
    ("file:///data/t", "file", "", "/data/t"),
    ("file:/data/a%20b", "file", "", "/data/a b"),
    ("file://localhost/data/t", "file", "", "/data/t"),
    ("/data/a%20b", "file", "", "/data/a%20b"),
    ('/d a t/it\'s "ü" 表#1?x', "file", "", '/d a t/it\'s "ü" 表#1?x'),
    ("/a:b/c", "file", "", "/a:b/c"),
    ("s3://bucket/a/b", "s3", "bucket", "a/b"),
    ("s3a://bucket//a/./b/", "s3", "bucket", "a/b"),
    ("s3n://bucket/a", "s3", "bucket", "a"),
    ("FILE:/data/t", "file", "", "/data/t"),
    ("/data/s3:/t", "file", "", "/data/s3:/t"),
    ("S3://bucket", "s3", "bucket", ""),
    ("s3://bucket/with space/ü%20", "s3", "bucket", "with space/ü%20"),
    ("gcs://b/x", "gs", "b", "x"),
    ("az://c/x", "az", "c", "x"),
    ("memory://name/x", "memory", "name", "x"),
]

BAD = [
    ("", "BAD_PATH"),
    ("  ", "BAD_PATH"),
    ("a\0b", "BAD_PATH"),
    ("/a\nb", "BAD_PATH"),
    ("/a\ud800", "BAD_PATH"),
    ("file:///a%00b", "BAD_PATH"),
    ("s3://bucket/a/../b", "BAD_PATH"),
    ("s3:///a", "BAD_PATH"),
    ("C:\\data\\t", "BAD_PATH"),
    ("\\\\host\\share\\t", "BAD_PATH"),
    ("ftp://host/x", "UNKNOWN_SCHEME"),
    ("http://host/x", "UNKNOWN_SCHEME"),
    ("C:/data/t", "BAD_PATH"),
    ("s3:/bucket/a", "BAD_PATH"),
    ("s3a:bucket/a", "BAD_PATH"),
    ("abfss:/c/a", "BAD_PATH"),
    ("file:data/t", "BAD_PATH"),
    ("dbfs:/data/t", "UNKNOWN_SCHEME"),
    ("dbfs:///data/t", "UNKNOWN_SCHEME"),
    ("DBFS:data/t", "UNKNOWN_SCHEME"),
    ("hdfs:/data/t", "UNKNOWN_SCHEME"),
    ("hdfs://name:8020/t", "UNKNOWN_SCHEME"),
    ("viewfs:/t", "UNKNOWN_SCHEME"),
    ("wasbs:/t", "UNKNOWN_SCHEME"),
    ("wasbs://c@a.blob.core.windows.net/t", "UNKNOWN_SCHEME"),
    ("oss:/bucket/t", "UNKNOWN_SCHEME"),
]


@pytest.mark.parametrize(("text", "scheme", "bucket", "path"), GOOD)
def test_what_a_path_means(text: str, scheme: str, bucket: str, path: str) -> None:
    location = locate_store(text)
    assert (location.scheme, location.bucket, location.path) == (scheme, bucket, path)


@pytest.mark.parametrize("text", [case[0] for case in GOOD])
def test_a_url_leads_back_to_the_same_place(text: str) -> None:
    assert locate_store(locate_store(text).url) == locate_store(text)


@pytest.mark.parametrize(("text", "code"), BAD)
def test_what_cannot_be_a_path(text: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        locate_store(text)
    assert caught.value.code == code
    assert caught.value.name == text or "%00" in text
    assert caught.value.remedy


def test_a_relative_path_is_made_absolute() -> None:
    assert locate_store("some/where").path == str(Path.cwd() / "some" / "where")
    assert locate_store("a:b/c").path == str(Path.cwd() / "a:b" / "c"), "no scheme that anybody knows, and no slash"
    assert locate_store(Path("x")).path == str(Path.cwd() / "x")


def test_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/hearth/me")
    assert [locate_store(text).path for text in ("~", "~/lake/t", Path("~/lake/t"), "./~", "/x/~/y", "~lake")] == [
        "/hearth/me",
        "/hearth/me/lake/t",
        "/hearth/me/lake/t",
        str(Path.cwd() / "~"),
        "/x/~/y",
        str(Path.cwd() / "~lake"),
    ]


def test_a_foreign_scheme_is_answered_with_what_to_write() -> None:
    for text, says in {"dbfs:/t": "/dbfs/", "wasbs:/t": "abfss://", "s3:/b/t": "s3://", "file:t": "file://"}.items():
        with pytest.raises(InvalidInput) as caught:
            locate_store(text)
        assert says in str(caught.value)


def test_the_account_of_an_azure_url() -> None:
    location = locate_store("abfss://container@account.dfs.core.windows.net/a/b")
    assert (location.scheme, location.bucket, location.account, location.path) == ("az", "container", "account", "a/b")
    assert locate_store(location.url) == location


@pytest.mark.parametrize("place", [None, 5, b"/data/t"])
def test_what_is_no_path_is_refused(place: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        locate_store(place)  # type: ignore[arg-type]
    assert caught.value.code == "BAD_PATH"


@pytest.mark.parametrize(
    "place",
    [
        "https://acct.blob.core.windows.net/c/t?sv=1&sig=SECRET",
        "https://user:SECRET@host/t",
        "s3n://AKIA:SEC/SECRET@bucket/t",
        "s3://AKIA:SECRET@bucket/t",
        "s3://AKIA:SECRET@b\x01/x",
        "abfss://c:SECRET@acct.dfs.core.windows.net/t",
        "abfss://c:SECRET@acct.dfs.core.windows.net/t/../x",
    ],
)
def test_no_secret_of_a_refused_url_is_shown(place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        locate_store(place)
    assert "SECRET" not in f"{caught.value} {caught.value.name} {caught.value!r}"
