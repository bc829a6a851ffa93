"""Splits Spark SQL text into tokens like Spark's lexer: longest match, keywords are ordinary words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from tamis.core.expr.literal_lists import Constants, long_list
from tamis.core.expr.syntax.problem import SyntaxProblem
from tamis.core.expr.syntax.strings import unquoted_text
from tamis.core.types.identifiers import BACKQUOTED, remove_backquotes


class Kind(Enum):
    """The kind of a token. Every keyword is a WORD: in Spark's default mode all of them can be names."""

    WORD = "word"
    QUOTED = "quoted"
    TEXT = "text"
    NUMBER = "number"
    SIGN = "sign"
    LIST = "list"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A token.

    ``word`` is what the parser matches: a word in capitals, an operator in its first spelling, or empty.
    ``value`` is the name, the text, the digits or the list itself.
    """

    kind: Kind
    word: str
    value: object
    start: int
    end: int
    suffix: str = ""


def whole_number(token: Token) -> int | None:
    """Return the value of a whole number without a suffix, of at most 100 digits; None for another token."""
    digits = str(token.value)
    plain = token.kind is Kind.NUMBER and not token.suffix and digits.isdecimal()
    return int(digits) if plain and len(digits) <= _MOST_DIGITS else None


_MOST_DIGITS = 100
"""Python reads no numbers of thousands of digits."""
_SPACE = re.compile("(?:[\t-\r \xa0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+|--(?:\\\\\n|[^\r\n])*)+")
_WORD = re.compile(r"(?:[^\W_]|_)+")
_POINTED = re.compile(r"((?:[0-9]+\.[0-9]*|\.[0-9]+)(?:E[+-]?[0-9]+)?)(BD|D|F)?(?![A-Z0-9_])", re.IGNORECASE | re.ASCII)
_WHOLE = re.compile(r"([0-9]+)(?:(E[+-]?[0-9]+)?(BD|D|F)|(E[+-]?[0-9]+)|([LSY]))?", re.IGNORECASE | re.ASCII)
_TEXT = re.compile(r"""r'[^']*'|r"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""", re.IGNORECASE | re.DOTALL)
_QUOTED = re.compile(BACKQUOTED)
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_SIGN = re.compile(r"<=>|<=|<>|<<|>>>|>>|>=|!=|!<|!>|==|=>|->|\|\||\|>|::|/\*\+|\*/|[-;(),.\[\]!=<>+*/%~&|^:?]")
_SAME = {"==": "=", "<>": "<>", "!=": "<>", "!>": "<=", "!<": ">="}
_LOOKAHEAD = 8
"""Number of END tokens, so that rules can look ahead without a bounds check."""
_ANGLES = frozenset({"ARRAY", "MAP", "STRUCT"})


def tokenize_sql(text: str) -> list[Token]:
    """Split ``text`` into tokens, ending with several END.

    Raises ``SyntaxProblem`` for an invalid token, or an unterminated quote or comment.
    """
    return _Lexer(text).run()


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.out = text, 0, list[Token]()
        self.angles = 0
        """Open ARRAY, MAP and STRUCT brackets, within which Spark reads ``>>`` as the end of two types."""

    def run(self) -> list[Token]:
        while self._to_next():
            self._token()
        return self.out + [Token(Kind.END, "", None, self.at, self.at)] * _LOOKAHEAD

    def _to_next(self) -> bool:
        """Skip blanks and comments; return whether text is left."""
        while self.at < len(self.text):
            if found := _SPACE.match(self.text, self.at):
                self.at = found.end()
            elif self.text.startswith("/*", self.at) and not self.text.startswith("/*+", self.at):
                self._comment()
            else:
                return True
        return False

    def _comment(self) -> None:
        depth, at = 0, self.at
        while found := _COMMENT_EDGE.search(self.text, at):
            depth, at = depth + (1 if found[0] == "/*" else -1), found.end()
            if not depth:
                self.at = at
                return
        raise SyntaxProblem("A quote or a comment in it does not end", self.at)

    def _token(self) -> None:
        text, at = self.text, self.at
        first = text[at]
        if first in "'\"" or (first in "rR" and text[at + 1 : at + 2] in {"'", '"'}):
            found = _TEXT.match(text, at)
            if found is None:
                raise SyntaxProblem("A quote or a comment in it does not end", at)
            self._add(Kind.TEXT, "", unquoted_text(found[0]), found.end())
        elif first == "`":
            found = _QUOTED.match(text, at)
            if found is None:
                raise SyntaxProblem("A quote or a comment in it does not end", at)
            self._add(Kind.QUOTED, "", remove_backquotes(found[0]), found.end())
        elif first.isalnum() or first == "_" or (first == "." and text[at + 1 : at + 2].isdecimal()):
            self._word_or_number()
        else:
            self._sign()

    def _word_or_number(self) -> None:
        word, number, suffix = _WORD.match(self.text, self.at), "", ""
        end = word.end() if word else self.at
        for pattern in (_POINTED, _WHOLE):
            found = pattern.match(self.text, self.at)
            if found and found.end() >= end and found.end() - self.at > len(number) + len(suffix):
                suffix = (found[2] if pattern is _POINTED else found[3] or found[5]) or ""
                number = found[0][: len(found[0]) - len(suffix)]
        if number:
            self._add(Kind.NUMBER, "", number, self.at + len(number) + len(suffix), suffix.upper())
        elif word is None:
            self._sign()
        elif not word[0].isascii():
            raise SyntaxProblem(f"The name {word[0]!r} has letters other than a to z: write it as `{word[0]}`", self.at)
        else:
            upper = word[0].upper()
            self.angles += upper in _ANGLES
            self._add(Kind.WORD, upper, word[0], end)

    def _sign(self) -> None:
        found = _SIGN.match(self.text, self.at)
        if found is None:
            raise SyntaxProblem(f"It cannot be read from {self.text[self.at]!r} on", self.at)
        sign = found[0]
        if sign in {">>", ">>>"} and self.angles:
            sign = ">"
        if sign == ">" and self.angles:
            self.angles -= 1
        self._add(Kind.SIGN, _SAME.get(sign, sign), None, self.at + len(sign))
        if sign == "(" and len(self.out) > 1 and self.out[-2].word == "IN":
            self._list()

    def _list(self) -> None:
        found: tuple[Constants, int] | None = long_list(self.text, self.at)
        if found is not None:
            self._add(Kind.LIST, "", found[0], found[1])

    def _add(self, kind: Kind, word: str, value: object, end: int, suffix: str = "") -> None:
        self.out.append(Token(kind, word, value, self.at, end, suffix))
        self.at = end
