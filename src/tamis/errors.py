"""All errors that Tamis raises: one base, nine categories, stable codes.

The category says what the caller should do next, the code what happened; the message names the object and the
remedy::

    TamisError
    ├── NotFound            (LookupError)       name something that exists
    ├── AlreadyExists       (FileExistsError)   choose another name, or open what is there
    ├── Conflict            (RuntimeError)      somebody else committed first: re-read and try again
    ├── SchemaMismatch      (ValueError)        the data or the expectation does not fit the table's schema
    ├── SchemaFenced        (RuntimeError)      this reader's schema is no longer valid: refresh
    ├── IncompatibleSchema  (ValueError)        the migration is against the rules
    ├── InvalidInput        (ValueError)        correct the call
    ├── CorruptData         (OSError)           what is stored cannot be trusted: restore or repair it
    └── StoreUnavailable    (ConnectionError)   the store did not answer, or refused: check it, try again

Each also subclasses the builtin error that a Python programmer would catch. Codes are append-only: scripts
may rely on them.
"""

from __future__ import annotations

from typing import ClassVar


class TamisError(Exception):
    """The base of all errors of this package.

    ``code`` is stable and machine-readable, ``name`` is the offending object (a path, column, version …),
    ``remedy`` says what to do. ``str(error)`` shows code, message and remedy.
    """

    default_code: ClassVar[str] = "ERROR"

    def __init__(self, message: str, *, code: str | None = None, name: str = "", remedy: str = "") -> None:
        super().__init__(message, code, name, remedy)
        self.message = message
        self.code = code or self.default_code
        self.name = name
        self.remedy = remedy

    def __str__(self) -> str:
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"[{self.code}] {self.message}{remedy}"

    def __reduce__(self) -> tuple[object, ...]:
        # The default protocol would lose keyword arguments when errors are pickled (by Spark workers).
        return _rebuild, (type(self), self.message, self.code, self.name, self.remedy, self._extra())

    def _extra(self) -> dict[str, object]:
        """Return a subclass's additional attributes."""
        return {}


class NotFound(TamisError, LookupError):
    """A table, version, column, index or file that was named does not exist."""

    default_code = "NOT_FOUND"


class AlreadyExists(TamisError, FileExistsError):
    """An object with that name exists already."""

    default_code = "ALREADY_EXISTS"


class Conflict(TamisError, RuntimeError):
    """What this operation relied on was changed by another commit, or lost; nothing of this operation is visible."""

    default_code = "CONFLICT"


class SchemaMismatch(TamisError, ValueError):
    """Data, or an expected schema id, does not fit the table's current schema.

    ``current_id`` and ``schema`` are the table's current ones, if the operation compared schemas.
    """

    default_code = "SCHEMA_MISMATCH"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        name: str = "",
        remedy: str = "",
        current_id: int | None = None,
        schema: object = None,
    ) -> None:
        super().__init__(message, code=code, name=name, remedy=remedy)
        self.current_id = current_id
        self.schema = schema

    def _extra(self) -> dict[str, object]:
        return {"current_id": self.current_id, "schema": self.schema}


class SchemaFenced(TamisError, RuntimeError):
    """The schema that a reader holds is no longer a valid migration of the table's, so the read is refused."""

    default_code = "SCHEMA_FENCED"


class IncompatibleSchema(TamisError, ValueError):
    """A schema change that the migration rules do not allow."""

    default_code = "INCOMPATIBLE_SCHEMA"


class InvalidInput(TamisError, ValueError):
    """An argument, option, filter or statement is not valid."""

    default_code = "INVALID_INPUT"


class CorruptData(TamisError, OSError):
    """A stored object is truncated, damaged, missing, or differs from what the log records."""

    default_code = "CORRUPT_DATA"


class StoreUnavailable(TamisError, ConnectionError):
    """The object store refused a request or did not answer; committed data is not affected."""

    default_code = "STORE_UNAVAILABLE"


def _rebuild(
    kind: type[TamisError], message: str, code: str, name: str, remedy: str, extra: dict[str, object]
) -> TamisError:
    return kind(message, code=code, name=name, remedy=remedy, **extra)


def error_code(error: BaseException) -> str:
    """Return the code of an error of this package, and the name of the class of any other."""
    return error.code if isinstance(error, TamisError) else type(error).__name__
