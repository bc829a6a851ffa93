"""Text from a table's data or log as it may stand on a terminal or page: what a terminal would obey is shown, not sent.

Values, names of columns and filters are written by others. An escape sequence among them could clear the screen, change a title or make the
terminal answer; a right-to-left override could make text read as another.
"""

from __future__ import annotations

import re

_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters of seven and of eight bits, separators of lines, controls of direction, halves of characters."""
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, *, keep: str = "") -> str:
    """Returns ``text`` with every character that a terminal obeys written as its escape, but for those in ``keep``."""
    return _OBEYED.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def printable_json(text: str) -> str:
    """Returns the same JSON without any character that a terminal obeys; line breaks between values stay."""
    return _OBEYED.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def _escape(character: str) -> str:
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
