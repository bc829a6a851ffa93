"""Small JSON objects that carry their own checksum.

The bytes are exactly ``{"crc32":"xxxxxxxx","<kind>":<body>}``; the checksum covers the bytes of the body as
stored. A truncated or garbled object, or one of another kind, raises ``CorruptData``; it never counts as
absent.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tamis.errors import CorruptData, InvalidInput, TamisError


def seal_json(kind: str, body: dict[str, Any]) -> bytes:
    """Serialize ``body`` with its checksum.

    Raises ``InvalidInput`` for a body that JSON cannot hold.
    """
    try:
        text = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"The {kind} holds what JSON cannot: {error}",
            code="NOT_JSON",
            name=kind,
            remedy="Give text, finite numbers, lists and mappings.",
        ) from error
    return _head(kind, text) + text + b"}"


def unseal_json(kind: str, data: bytes, name: str) -> dict[str, Any]:
    """Return the body of an object of this ``kind``; ``name`` appears in messages. Raises ``CorruptData``."""
    start = len(_head(kind, b""))
    text = data[start:-1]
    if data[:start] != _head(kind, text) or data[-1:] != b"}":
        why = "is empty" if not data else "is truncated or garbled"
        raise CorruptData(
            f"The {kind} {name} {why}.", code="BAD_CHECKSUM", name=name, remedy="Restore it from a backup."
        )
    with parse_errors(kind, name):
        body = json.loads(text)
        if not isinstance(body, dict):
            raise TypeError("not an object")
    return body


@contextmanager
def parse_errors(kind: str, name: str) -> Iterator[None]:
    """Convert errors raised while parsing a stored object into ``CorruptData`` naming it."""
    try:
        yield
    except TamisError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise CorruptData(
            f"The {kind} {name} is not what this version writes: {type(error).__name__}: {error}",
            code="BAD_CONTENT",
            name=name,
            remedy="Restore it from a backup, or upgrade tamis.",
        ) from error


def _head(kind: str, text: bytes) -> bytes:
    return b'{"crc32":"%08x","%s":' % (zlib.crc32(text), kind.encode())
