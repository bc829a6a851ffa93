"""A table version as a ``pyarrow.dataset.Dataset``, for DuckDB, Polars and whatever else scans datasets.

Rows never come from the Parquet files directly: those hold deleted rows, old names and types, and no defaults.
``scanner`` reads them by a Tamis scan, and lets pyarrow evaluate a filter that the scan cannot. The base class has
one file that cannot exist, so that code which reads a dataset's files in C++ fails instead of giving other rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from tamis.engine.scan import Scan
from tamis.errors import InvalidInput
from tamis.table.expression_filters import NO_FILTER, columns_of, implied_conjuncts
from tamis.table.narrowed_scan import narrow_scan

_NO_FILE = "/dev/null/Tamis reads the rows of this dataset: call its scanner() or to_table()"


class TamisDataset(ds.FileSystemDataset):  # type: ignore[misc]  # pyarrow has no types
    """The rows of one version. ``scanner``, and what it serves, read only what their columns and filter need.

    A filter skips parts, blocks and rows by those of its conjuncts that mean the same in Spark SQL. If another one
    is left, pyarrow evaluates all of it, so its rows are always pyarrow's.
    """

    def __init__(self, scan: Scan, condition: pc.Expression | None = None, *, schema: pa.Schema | None = None) -> None:
        form = ds.IpcFileFormat()
        files = fs.LocalFileSystem()
        super().__init__([form.make_fragment(_NO_FILE, files)], scan.schema if schema is None else schema, form, files)
        self._scan = scan
        self._condition = condition

    def scanner(self, columns: Any = None, filter: pc.Expression | None = None, **options: Any) -> ds.Scanner:  # noqa: A002  # pyarrow's name
        """Return a pyarrow scanner, which can be read once."""
        read, left = self._narrowed(columns, _both(self._condition, filter))
        return ds.Scanner.from_batches(read.to_batches(), columns=columns, filter=left, **options)

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:  # noqa: A002  # pyarrow's name
        """Count the rows, as far as possible from metadata."""
        read, left = self._narrowed([], _both(self._condition, filter))
        if left is None:
            return read.count()
        found: int = self.scanner([], filter, **options).count_rows()
        return found

    def filter(self, expression: pc.Expression) -> TamisDataset:
        """Return a dataset of the rows that match ``expression``, too."""
        return TamisDataset(self._scan, _both(self._condition, expression))

    def _narrowed(self, columns: Any, condition: pc.Expression | None) -> tuple[Scan, pc.Expression | None]:
        """Return a scan of the columns that are needed, and the filter that pyarrow has to evaluate on its rows."""
        found = NO_FILTER if condition is None else implied_conjuncts(condition, self._scan.reader)
        left = None if found.exact else condition
        needed = _needed(columns, left)
        names = self._scan.reader.names
        # pyarrow also takes dotted paths: which column they lead into is left to it.
        chosen = names if needed is None or not needed.issubset(names) else [n for n in names if n in needed]
        return narrow_scan(self._scan, chosen, found.conjuncts), left

    def _refused(self, method: str) -> NoReturn:
        raise InvalidInput(
            f"A dataset of Tamis has no {method}: its files do not hold the table's rows.",
            code="DATASET_METHOD",
            name=method,
            remedy="Use to_table(columns=…, filter=…) or scanner(…), and go on with their rows.",
        )

    @property
    def files(self) -> list[str]:
        self._refused("files")

    @property
    def filesystem(self) -> Any:
        self._refused("filesystem")

    @property
    def format(self) -> Any:
        self._refused("format")

    @property
    def partitioning(self) -> None:
        return None

    @classmethod
    def from_paths(cls, *_: Any, **__: Any) -> Any:
        raise TypeError("A dataset of Tamis comes from Table.to_pyarrow_dataset().")

    def get_fragments(self, filter: Any = None) -> Any:  # noqa: A002, ARG002  # pyarrow's name
        self._refused("get_fragments")

    def replace_schema(self, schema: Any) -> Any:  # noqa: ARG002
        self._refused("replace_schema")

    def sort_by(self, sorting: Any, **options: Any) -> Any:
        """Return all rows, sorted, as an in-memory dataset."""
        return ds.dataset(self.to_table().sort_by(sorting, **options))

    def join(self, *_: Any, **__: Any) -> Any:
        self._refused("join")

    def join_asof(self, *_: Any, **__: Any) -> Any:
        self._refused("join_asof")

    def __reduce__(self) -> Any:
        self._refused("pickled form")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._scan.table!r}, version {self._scan.version}>"


def _both(one: pc.Expression | None, other: pc.Expression | None) -> pc.Expression | None:
    given = [e for e in (one, other) if e is not None]
    return reduce(lambda a, b: a & b, given) if given else None


def _needed(columns: Any, condition: pc.Expression | None) -> set[str] | None:
    """Return the columns to read for a projection and a filter; None for all."""
    if columns is None:
        return None
    expressions = list(columns.values()) if isinstance(columns, Mapping) else []
    found = set() if isinstance(columns, Mapping) or not isinstance(columns, Iterable) else set(columns)
    for expression in [*expressions, *([] if condition is None else [condition])]:
        names = columns_of(expression)
        if names is None:
            return None
        found |= names
    return found
