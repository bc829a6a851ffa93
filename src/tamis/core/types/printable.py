"""Makes text from a table's data or log safe to print: escapes characters that control a terminal.

Values, column names and filters are written by others. An escape sequence among them could clear the screen,
change a title or make the terminal answer; a right-to-left override could make text read as another.
"""

from __future__ import annotations

import re

_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""7-bit and 8-bit control characters, line separators, direction controls, and surrogates."""
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, *, keep: str = "") -> str:
    """Return ``text`` with every terminal-controlling character escaped, except those in ``keep``."""
    return _OBEYED.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def printable_json(text: str) -> str:
    """Return the same JSON with every terminal-controlling character escaped, except line breaks."""
    return _OBEYED.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def _escape(character: str) -> str:
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
