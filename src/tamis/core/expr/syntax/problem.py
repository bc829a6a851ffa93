"""The internal error for text that Spark's grammar rejects."""

from __future__ import annotations


class SyntaxProblem(Exception):
    """Why text cannot be parsed, and at which character; None if no position is to blame."""

    def __init__(self, why: str, at: int | None = None) -> None:
        super().__init__(why)
        self.why, self.at = why, at

    def message_for(self, text: str) -> str:
        """Return the reason with its column, and its line if ``text`` has several, both from 1."""
        if self.at is None:
            return self.why
        line, column = text.count("\n", 0, self.at) + 1, self.at - text.rfind("\n", 0, self.at)
        return f"{self.why} (line {line}, column {column})" if "\n" in text else f"{self.why} (column {column})"
