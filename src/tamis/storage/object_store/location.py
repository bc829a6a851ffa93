"""Parses, normalizes and checks the path or URL of a table before anything is accessed.

Local paths become absolute, with ``..`` resolved and ``~`` expanded to the home folder. Object-store URLs
with ``..`` are refused, because there the dots would be part of a name.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from tamis.errors import InvalidInput

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_ONE_SLASH = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?!//)(/?)", re.DOTALL)
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_FILE = re.compile(r"file:(?://(?:localhost)?)?(/.*)", re.DOTALL | re.IGNORECASE)
_ALIASES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "azure": "az",
    "abfs": "az",
    "abfss": "az",
    "memory": "memory",
}
_FOREIGN = {
    "dbfs": "Copy it to an object store, or give its path on the local disk, such as /dbfs/….",
    "hdfs": "Use an object store, or a local path if it is mounted.",
    "viewfs": "Use an object store, or a local path if it is mounted.",
    "wasb": "Write abfss://container@account.dfs.core.windows.net/….",
    "wasbs": "Write abfss://container@account.dfs.core.windows.net/….",
}
"""Schemes that Spark users know and Tamis does not, and what to do instead."""


@dataclass(frozen=True, slots=True)
class Location:
    """The place of a table; ``scheme`` is ``file``, ``memory``, ``s3``, ``gs`` or ``az``.

    ``bucket`` is the bucket, container or memory store. ``path`` is an absolute local path, or a key prefix
    without slashes at its ends. ``url`` identifies the place to people and to other processes; on local disk
    it is the plain path.
    """

    scheme: str
    bucket: str
    path: str
    account: str = ""
    """The Azure account, if the URL names one."""

    @property
    def remote(self) -> bool:
        """Whether a request takes milliseconds, so that fewer and concurrent requests are better."""
        return self.scheme not in {"file", "memory"}

    @property
    def resolved_url(self) -> str:
        """The URL with symbolic links resolved, by which two paths of one local folder are recognized."""
        return str(Path(self.path).resolve()) if self.scheme == "file" else self.url

    @property
    def url(self) -> str:
        if self.scheme == "file":
            return self.path
        host = f"{self.bucket}@{self.account}.dfs.core.windows.net" if self.account else self.bucket
        scheme = "abfss" if self.account else self.scheme
        return f"{scheme}://{host}/{self.path}".rstrip("/")


def locate_store(place: str | os.PathLike[str]) -> Location:
    """Return the location that ``place`` names.

    Raises ``InvalidInput`` (``BAD_PATH``, ``UNKNOWN_SCHEME``) if it is not a valid location.
    """
    text = os.fspath(place) if isinstance(place, os.PathLike) else place
    if not isinstance(text, str):
        raise _bad(repr(text), "is not text")
    if not text.strip():
        raise _bad(text, "is empty")
    if any(ord(c) < 32 or ord(c) == 127 or 0xD800 <= ord(c) <= 0xDFFF for c in text):
        raise _bad(text, "holds a control character or half a character")
    if match := _FILE.fullmatch(text):
        return _local(unquote(match[1]))
    if _WINDOWS.match(text) and os.sep == "/":
        raise _bad(text, "is one of Windows, which this machine is not")
    if match := _SCHEME.fullmatch(text):
        return _remote(text, match[1].lower(), match[2])
    if match := _ONE_SLASH.match(text):
        scheme = match[1].lower()
        if scheme in _ALIASES or scheme == "file":
            raise _bad(text, f"has a scheme without two slashes; write {scheme}://")
        if match[2] or scheme in _FOREIGN:
            raise _unknown(text, scheme)
    return _local(text)


def _local(path: str) -> Location:
    if "\0" in path:
        raise _bad(path, "holds a control character")
    if path == "~" or path.startswith(("~/", f"~{os.sep}")):  # a folder named "~" is written ./~
        path = os.path.expanduser(path)  # noqa: PTH111  # Path.expanduser raises where there is no home
    return Location("file", "", os.path.abspath(Path(path)))  # noqa: PTH100  # Path.absolute keeps the dots, Path.resolve follows links


def _remote(text: str, scheme: str, rest: str) -> Location:
    if scheme not in _ALIASES:
        raise _unknown(text, scheme)
    bucket, _, path = rest.partition("/")
    container = bucket.partition("@")[0] if _ALIASES[scheme] == "az" else ""
    named = rest if ":" in bucket else bucket  # a secret may hold slashes
    if ("@" in named and _ALIASES[scheme] != "az") or ":" in container:  # s3n://key:secret@bucket must not be shown
        place = _without_secrets(f"{scheme}://{named}")
        raise InvalidInput(
            f"The URL {place} holds credentials.",
            code="BAD_PATH",
            name=place,
            remedy="Give them as storage_options: access_key_id and secret_access_key.",
        )
    segments = [segment for segment in path.split("/") if segment not in {"", "."}]
    if ".." in segments:
        raise _bad(text, "holds '..', which means nothing in an object store")
    account = ""
    if "@" in bucket:
        bucket, _, host = bucket.partition("@")
        account = host.partition(".")[0]
    if not bucket:
        raise _bad(text, "names no bucket or container")
    return Location(_ALIASES[scheme], bucket, "/".join(segments), account)


def _unknown(text: str, scheme: str) -> InvalidInput:
    shown = _without_secrets(text)
    return InvalidInput(
        f"The scheme of {shown!r} is not known.",
        code="UNKNOWN_SCHEME",
        name=shown,
        remedy=_FOREIGN.get(scheme, "Use a local path, file://, s3://, gs://, az:// or memory://."),
    )


def _bad(text: str, why: str) -> InvalidInput:
    shown = _without_secrets(text)
    return InvalidInput(
        f"The path {shown!r} {why}.", code="BAD_PATH", name=shown, remedy="Give the path or URL of a table's folder."
    )


def _without_secrets(text: str) -> str:
    """Return a URL without what may be a secret: text before an @, and a query, such as the signature of a SAS."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        return text
    place = re.sub("[?#].*", "?…", rest, flags=re.DOTALL)
    user, at, host = place.rpartition("@")
    container = ":" not in user and scheme.lower() in {"abfs", "abfss", "az", "azure", "wasb", "wasbs"}
    return f"{scheme}://{place if container or not at else f'…@{host}'}"
