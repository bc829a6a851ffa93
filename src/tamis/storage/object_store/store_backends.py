"""The backends of ``Store``: how each is opened, which options it takes, and how its errors are translated.

Everything specific to ``obstore`` is in this file and in ``store``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import obstore.store
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)

from tamis.errors import CorruptData, InvalidInput, NotFound, StoreUnavailable, TamisError
from tamis.storage.object_store.location import Location
from tamis.storage.object_store.lru_cache import LruCache
from tamis.storage.object_store.server_refusals import server_refusal
from tamis.storage.object_store.storage_options import BY_SCHEME, CLIENT, PREFIXES, RETRIES, redact_values
from tamis.world import world

_memory: dict[str, Any] = {}
"""The memory stores of this process, by name."""

_SHARED_SECONDS = 300.0
"""How long a connection is shared: the files from which credentials were read may change."""
_REMOTE = re.compile(r"(?!file:|memory:)[a-z][a-z0-9+.-]*://")
"""Matches the URLs of objects that are not on a disk of this machine."""
_ENVIRONMENT = (*PREFIXES, "http_proxy", "https_proxy", "all_proxy", "no_proxy")
"""Prefixes of the environment variables from which ``obstore`` takes options that are not given."""

_connections = LruCache[tuple[float, Any]](1_000)
"""When a remote store was connected to, and its connections, by location, options and environment.

Each has a pool of its own: making it takes milliseconds, and its first request a handshake.
"""

_process: int | None = None
"""The process that made the first request."""


def connect_store(location: Location, options: Mapping[str, Any], *, mkdir: bool = False) -> Any:
    """Return the ``obstore`` store for ``location``. Remote ones are shared for some minutes.

    Raises ``InvalidInput`` naming the option that is unknown or invalid, and ``FileNotFoundError`` for a
    missing local folder unless ``mkdir``.
    """
    if location.scheme in {"file", "memory"}:
        for key in options:
            raise _unknown(key, location, "It takes no options.")
    if location.scheme == "memory":
        return _memory.setdefault(location.bucket, obstore.store.MemoryStore())
    if location.scheme == "file":
        return _local(location, mkdir)
    config, retry = _split(options)
    environment = {k: v for k, v in world().environment().items() if k.lower().startswith(_ENVIRONMENT)}
    request = (location, *(frozenset(named.items()) for named in (config, retry, environment)))
    found, now = _connections.get(request), world().monotonic()
    if found is None or not 0 <= now - found[0] < _SHARED_SECONDS:
        found = now, _remote(location, options, config, retry)
        _connections.put(request, found, 1)
    return found[1]


def _remote(location: Location, options: Mapping[str, Any], config: dict[str, Any], retry: dict[str, Any]) -> Any:
    """Connect to a remote store by ``options``, which ``_split`` has split into ``config`` and ``retry``."""
    extra: dict[str, Any] = {"retry_config": retry} if retry else {}
    prefix = location.path or None
    try:
        match location.scheme:
            case "s3":
                return obstore.store.S3Store(location.bucket, prefix=prefix, **extra, **config)
            case "gs":
                return obstore.store.GCSStore(location.bucket, prefix=prefix, **extra, **config)
            case _:
                if location.account:
                    config.setdefault("account_name", location.account)
                return obstore.store.AzureStore(location.bucket, prefix=prefix, **extra, **config)
    except UnknownConfigurationKeyError as error:
        named = re.search(r"key: '([^']*)'", str(error))
        raise _unknown(named[1] if named else "?", location, _nearest(named, location)) from None
    except (BaseError, TypeError, ValueError) as error:
        said = re.sub('"[^"]*"', '"…"', redact_values(first_line(error), options))
        raise InvalidInput(
            f"The storage options for {location.url} cannot be used: {said}",
            code="BAD_OPTION",
            name=", ".join(sorted(map(str, options))) or location.url,
            remedy="Correct storage_options, or the environment that they come from.",
        ) from None  # the store's own message may quote a value


def translate_error(error: Exception, action: str, name: str, options: Mapping[str, Any] | None = None) -> Exception:
    """Translate ``error``, raised by ``action`` on the object ``name``, into a ``TamisError``.

    Its text has no address and none of the values of ``options``. Returns the error unchanged if it already is one
    or does not come from the store.
    """
    if isinstance(error, FileNotFoundError) and action != "write":
        return NotFound(f"There is no object {name}.", code="OBJECT_NOT_FOUND", name=name, remedy="Check the path.")
    text = redact_values(first_line(error), options or {})
    if isinstance(error, ValueError) and "parse path" in text:
        return InvalidInput(
            f"{name!r} cannot be a path: {text}", code="BAD_PATH", name=name, remedy="Choose another name."
        )
    if isinstance(error, TamisError) or not isinstance(error, BaseError | OSError):
        return error
    if isinstance(error, PreconditionError) and action == "read":
        return CorruptData(
            f"{name} is no longer in the state that was asked for.",
            code="OBJECT_CHANGED",
            name=name,
            remedy="Put it back as it was.",
        )
    if re.search("range was invalid|invalid range|range not satisfiable|requested .* got ", text, re.IGNORECASE):
        return CorruptData(
            f"{name} is shorter than it should be.", code="TRUNCATED", name=name, remedy="Restore it from a backup."
        )
    if "file name too long" in text.lower():
        return InvalidInput(
            f"{name} has a part that is too long for a file name.",
            code="BAD_PATH",
            name=name,
            remedy="Choose a shorter name.",
        )
    if "not a directory" in text.lower():
        return InvalidInput(
            f"{name} lies below something that is a file.",
            code="NOT_A_FOLDER",
            name=name,
            remedy="Give the path of a folder.",
        )
    if said := server_refusal(str(error), name):
        return said
    return _unavailable(error, action, name, text)


def _unavailable(error: Exception, action: str, name: str, text: str) -> StoreUnavailable:
    """The error for a store that refused, cannot do what was asked, or did not answer."""
    denied = isinstance(error, PermissionDeniedError | UnauthenticatedError | PermissionError)
    if denied or re.search(r"permission denied|status code: 40[13]\b", text, re.IGNORECASE):
        return StoreUnavailable(
            f"The store does not allow to {action} {name}: {text}",
            code="ACCESS_DENIED",
            name=name,
            remedy="Check the credentials in storage_options and the rights on the path.",
        )
    if isinstance(error, NotSupportedError):
        return StoreUnavailable(
            f"The store cannot {action} {name}: {text}",
            code="NOT_SUPPORTED",
            name=name,
            remedy="Tamis needs a store that can write an object only if it is absent.",
        )
    if (isinstance(error, OSError) and not _REMOTE.match(name)) or "LocalFileSystem" in str(error):
        return StoreUnavailable(
            f"Could not {action} {name}: {text}",
            code="DISK_ERROR",
            name=name,
            remedy="Check the path, its rights and the space on its disk.",
        )
    return StoreUnavailable(
        f"Could not {action} {name}: {text}",
        code="STORE_UNAVAILABLE",
        name=name,
        remedy="Check that the store can be reached, then try again.",
    )


def check_process(name: str) -> None:
    """Raise ``StoreUnavailable`` in a fork of a process that has used a store.

    The store's threads do not exist in the fork, so a request would wait for ever.
    """
    global _process
    here = os.getpid()
    if _process is None:
        _process = here
    if _process != here:
        raise StoreUnavailable(
            f"{name} cannot be reached from a fork of a process that has used a store.",
            code="FORKED",
            name=name,
            remedy="Start processes by spawn or forkserver, or fork before the first use.",
        )


def is_already_exists(error: Exception) -> bool:
    """Return whether ``error`` says that the object already exists."""
    return isinstance(error, AlreadyExistsError | PreconditionError | FileExistsError)


def first_line(error: Exception) -> str:
    """Return an error's message as a sentence, without the store's debug output."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return said if said.endswith((".", "!", "?")) else f"{said}."


def _local(location: Location, mkdir: bool) -> Any:
    path = Path(location.path)
    if path.exists() and not path.is_dir():
        raise InvalidInput(
            f"{path} is a file.", code="NOT_A_FOLDER", name=str(path), remedy="Give the path of a folder."
        )
    if not mkdir and not path.exists():
        raise FileNotFoundError(str(path))
    return obstore.store.LocalStore(path, mkdir=mkdir)


def _split(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the options into store and retry options, converted to the types they take."""
    config: dict[str, Any] = {}
    retry: dict[str, Any] = {}
    for key, value in options.items():
        if not isinstance(value, str | bool | int | float):
            raise InvalidInput(
                f"The storage option {key!r} is a {type(value).__name__}.",
                code="BAD_OPTION",
                name=str(key),
                remedy="Options are text, numbers or true and false.",
            )
        name = str(key).lower()
        if name not in RETRIES:
            config[str(key)] = value if isinstance(value, str | bool) else str(value)
            continue
        try:
            retry[name] = int(value) if name == "max_retries" else timedelta(seconds=float(value))
        except ValueError:
            raise InvalidInput(
                f"The storage option {key} is not a number.", code="BAD_OPTION", name=key, remedy="Give a number."
            ) from None
    return config, retry


def _nearest(named: re.Match[str] | None, location: Location) -> str:
    names = sorted({*BY_SCHEME[location.scheme], *CLIENT, *RETRIES})
    near = get_close_matches(named[1].lower(), names, n=1) if named else []
    return f"Did you mean {near[0]}?" if near else f"Options are: {', '.join(names)}."


def _unknown(key: object, location: Location, advice: str) -> InvalidInput:
    return InvalidInput(
        f"The storage option {key!r} is not known for {location.url}.",
        code="UNKNOWN_OPTION",
        name=str(key),
        remedy=advice,
    )
