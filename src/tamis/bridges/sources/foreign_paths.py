"""Where the files of a foreign table lie: below its root, or elsewhere, which is refused unless it is allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import InvalidInput
from tamis.storage.object_store.location import locate_store
from tamis.storage.object_store.relative_paths import OUTSIDE
from tamis.storage.object_store.store import Store, open_store

_ABSOLUTE = r"^(/|[A-Za-z][A-Za-z0-9+.-]*:)"
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


@dataclass(slots=True)
class Root:
    """The root of a foreign table; ``outside``: whether files elsewhere are allowed."""

    store: Store
    outside: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def resolve(self, path: str, *, encoded: bool = True) -> str:
        """Return the decoded path below the root, or the URL of a file elsewhere."""
        return str(self.resolve_all(pa.array([path], pa.string()), encoded=encoded)[0])

    def resolve_all(self, paths: pa.Array, *, encoded: bool) -> pa.Array:
        """Return decoded paths below the root, and URLs of files elsewhere.

        Raises ``InvalidInput`` (``OUTSIDE_SOURCE``) for what lies outside the root and is not allowed to, and
        (``SOURCE_PATH``) for escapes of bytes that are not UTF-8.
        """
        absolute = pc.match_substring_regex(paths, _ABSOLUTE)
        if encoded:
            # a plain path with a slash in front is encoded, too; both are URI references
            paths = self._decoded(paths)
        if pc.any(absolute).as_py():
            paths = pc.if_else(absolute, self._relative(paths), paths)
            still = pc.match_substring_regex(paths, _ABSOLUTE)
        else:
            still = pa.array([False]).take(pa.array([0] * len(paths), pa.int8())) if len(paths) else absolute
        escapes = pc.and_(pc.invert(still), pc.match_substring_regex(paths, OUTSIDE))
        wrong = escapes if self.outside else pc.or_(escapes, still)
        wrong = pc.or_(wrong, pc.and_(still, pc.match_substring_regex(paths, r"(^|/)\.\.(/|$)|[\x00-\x1f\x7f]")))
        if pc.any(wrong).as_py():
            name = paths.filter(wrong)[0].as_py()
            raise InvalidInput(
                f"The file {name} lies outside the root {self.store.url} of its table.",
                code="OUTSIDE_SOURCE",
                name=name,
                remedy="Adopt the table that the file belongs to, or copy the rows with Spark.",
            )
        return paths

    def _decoded(self, paths: pa.Array) -> pa.Array:
        try:
            return percent_decoded(paths)
        except pa.ArrowInvalid as error:
            raise InvalidInput(
                f"The table at {self.store.url} names a file whose path is not UTF-8.",
                code="SOURCE_PATH",
                name=self.store.url,
                remedy="Rename the file and write its path anew, or copy the rows with Spark.",
            ) from error

    def file_identities(self, paths: pa.Array) -> pa.Array:
        """Return what tells files apart: encoded paths decoded, and relative to the root if they lie below it."""
        decoded = percent_decoded_bytes(paths)
        absolute = pc.fill_null(pc.match_substring_regex(paths, _ABSOLUTE), False)
        if not pc.any(absolute).as_py():
            return decoded
        try:
            text = decoded.cast(pa.string())
        except pa.ArrowInvalid:  # such a path is refused where its file is read
            return decoded
        return pc.if_else(absolute, self._relative(text), text).cast(pa.binary())

    def opened(self, place: str) -> tuple[Store, str]:
        """Return the store of a resolved path, and the path in it."""
        if not re.match(_ABSOLUTE, place):
            return self.store, place
        folder, _, name = place.rpartition("/")
        return open_store(folder, self.options), name

    def _relative(self, paths: pa.Array) -> pa.Array:
        """Cut the root off URLs that begin with it, in whichever form they write it."""
        location = self.store.location
        if location.scheme == "file":
            prefix = rf"^(file:(//(localhost)?)?)?{re.escape(location.path.rstrip('/'))}/+"
        else:
            schemes = {"s3": "s3[an]?", "gs": "gc?s", "az": "(azure|az|abfss?)", "memory": "memory"}[location.scheme]
            host = rf"{re.escape(location.bucket)}(@[^/]*)?"
            folder = f"{re.escape(location.path)}/+" if location.path else ""
            prefix = rf"^{schemes}://{host}/+{folder}"
        return pc.replace_substring_regex(paths, prefix, "")


def source_root(place: str, options: Mapping[str, Any] | None, *, outside: bool) -> Root:
    """Return the root at ``place``. Raises as ``open_store`` does."""
    locate_store(place)
    return Root(open_store(place, options), outside, dict(options or {}))


def percent_decoded(paths: pa.Array) -> pa.Array:
    """Decode the escapes of URIs, for all paths at once."""
    return percent_decoded_bytes(paths).cast(pa.string())


def percent_decoded_bytes(paths: pa.Array) -> pa.Array:
    """Decode the escapes of URIs to bytes, which may not be UTF-8."""
    if not pc.any(pc.match_substring(paths, "%")).as_py():
        return paths.cast(pa.binary())
    text = "\n".join(pc.unique(paths).to_pylist())
    raw = paths.cast(pa.binary())
    for escape in sorted({e.upper() for e in _ESCAPE.findall(text)}, key=lambda e: e == "%25"):  # the sign itself last
        for form in {escape, escape.lower(), escape[:2] + escape[2:].lower(), escape[:2].lower() + escape[2:]}:
            raw = pc.replace_substring(raw, form.encode(), bytes([int(escape[1:], 16)]))
    return raw


def utf8_when_decoded(paths: pa.Array) -> pa.Array:
    """Return a mask of the paths whose escapes decode to UTF-8. No other file was ever taken from a source."""
    decoded = percent_decoded_bytes(paths)
    try:
        decoded.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_is_utf8(path) for path in decoded.to_pylist()])
    return pa.repeat(True, len(paths))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
