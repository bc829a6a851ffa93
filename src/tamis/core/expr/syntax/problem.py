"""Text that Spark's grammar does not take, before it is an error that people see."""

from __future__ import annotations


class SyntaxProblem(Exception):
    """Why text cannot be read, and at which of its characters; None where no place is to blame."""

    def __init__(self, why: str, at: int | None = None) -> None:
        super().__init__(why)
        self.why, self.at = why, at

    def said(self, text: str) -> str:
        """Why, and where in ``text``: its line, if there are several, and its column, both from 1."""
        if self.at is None:
            return self.why
        line, column = text.count("\n", 0, self.at) + 1, self.at - text.rfind("\n", 0, self.at)
        return f"{self.why} (line {line}, column {column})" if "\n" in text else f"{self.why} (column {column})"
