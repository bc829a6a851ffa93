"""Grammar of intervals: ``INTERVAL 1 DAY 2 HOURS``, ``INTERVAL '1-2' YEAR TO MONTH``."""

from __future__ import annotations

from tamis.core.expr.syntax.nodes import Interval, Node
from tamis.core.expr.syntax.reader import Found, Reader
from tamis.core.expr.syntax.tokens import Kind

_SINGULAR = ("NANOSECOND", "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")
_UNITS = {name + plural: name for name in _SINGULAR for plural in ("", "S")}
_SPANS = frozenset({"SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR"})


class Intervals(Reader):
    """The rule for intervals with units outside quotes."""

    def interval(self, at: int) -> Found[Node]:
        """Yield intervals whose word INTERVAL is the token ``at``, those with the most amounts first."""
        amounts: list[tuple[int, str, str]] = []
        end = at + 1
        while found := self._amount(end):
            amounts.append(found)
            end = found[0]
        for count in range(len(amounts), 0, -1):
            after = amounts[count - 1][0]
            pairs = tuple((amount, _UNITS[unit]) for _, amount, unit in amounts[:count])
            if (
                count == 1
                and self.word(after) == "TO"
                and self.word(after + 1) in _SPANS
                and self.word(after - 1) in _SPANS
            ):
                yield after + 2, Interval(*self.span(at, after + 2), pairs, self.word(after + 1))
            yield after, Interval(*self.span(at, after), pairs)

    def _amount(self, at: int) -> tuple[int, str, str] | None:
        sign = self.word(at) if self.word(at) in {"+", "-"} else ""
        at += bool(sign)
        end, token = at + 1, self.tokens[at]
        if token.kind is Kind.TEXT:
            while self.tokens[end].kind is Kind.TEXT:
                end += 1
            amount = "".join(str(t.value) for t in self.tokens[at:end])
        elif token.kind is Kind.NUMBER and not token.suffix and "e" not in str(token.value).lower():
            amount = str(token.value)
        else:
            self.record_mismatch(at)
            return None
        if self.word(end) not in _UNITS:
            self.record_mismatch(end)
            return None
        if sign == "-":
            amount = amount[1:] if amount.startswith("-") else "-" + amount
        return end + 1, amount, self.word(end)
