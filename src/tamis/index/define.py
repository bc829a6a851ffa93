"""What an index is about: its columns, the schema of its parts, and what may be indexed.

Law: an index follows what a column *is* (its ids), never what it is called. The parts of an index hold the indexed columns under their own
column ids, so that statistics, pruning and the reader know them as they know the table's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tamis.errors import AlreadyExists, InvalidInput, NotFound
from tamis.expr import Column
from tamis.state import Head, IndexDefinition
from tamis.types import INTEGER, NULL, VARIANT, Field, Schema, String, Struct
from tamis.types.logical import BINARY_COLLATION
from tamis.world import new_id, world

PART = 2**31 - 2
"""Column id of the ordinal of the base part among those that the index segment covers."""
ROW = 2**31 - 3
"""Column id of the physical row ordinal in that part."""
FEATURE = "indexes"
"""A writer must know it: one that does not would drop the definitions when it changes the head."""


def defined(head: Head, name: str, columns: Sequence[str] | str, build: str, version: int) -> IndexDefinition:
    """A new index of ``columns`` (names, dotted for fields of structs). Raises ``AlreadyExists``, ``NotFound``, ``InvalidInput`` naming what cannot be."""
    if not name.strip() or name.strip().lower() in {"auto", "off", "lookup", "plan"}:
        raise InvalidInput(f"{name!r} cannot be the name of an index.", code="BAD_NAME", name=str(name), remedy="Give another name.")
    if any(index.name.lower() == name.lower() for index in head.indexes):
        raise AlreadyExists(
            f"There is an index {name!r} already.", code="INDEX_EXISTS", name=name, remedy="Drop it first, or say IF NOT EXISTS."
        )
    if build not in {"with_write", "deferred"}:
        raise InvalidInput(f"An index cannot be built {build!r}.", code="BAD_OPTION", name="build", remedy="Give with_write or deferred.")
    wanted = [columns] if isinstance(columns, str) else list(columns)
    if not wanted:
        raise InvalidInput("No column is indexed.", code="NO_COLUMNS", name="columns", remedy="Name at least one.")
    paths = [_path(head.schema or Schema(()), column) for column in wanted]
    if twice := next((column for at, column in enumerate(wanted) if paths[at] in paths[:at]), None):
        raise InvalidInput(f"Column {twice!r} stands twice.", code="DUPLICATE_COLUMN", name=twice, remedy="Name it once.")
    return IndexDefinition(new_id(), name, tuple(paths), build, version, world().now_micros())


def _path(schema: Schema, name: str) -> tuple[int, ...]:
    if not isinstance(name, str):
        raise InvalidInput(f"{name!r} is not a column name.", code="BAD_COLUMN", name=repr(name), remedy="Give names as text.")
    try:
        found = schema.find(name)
    except NotFound:
        found = schema.find(Column(NULL, (), name).path)
    for above in found[:-1]:
        if not isinstance(above.type, Struct):
            raise _unfit(name, f"stands inside {above.type}")
    if why := obstacle(found[-1]):
        raise _unfit(name, why)
    return tuple(f.id for f in found)


def obstacle(field: Field) -> str | None:
    """Why a column cannot be indexed, as the end of a sentence; None where it can."""
    kind = field.type
    if isinstance(kind, String) and kind.collation != BINARY_COLLATION:
        return f"is compared under the collation {kind.collation}"
    if kind.children or kind in (VARIANT, NULL):
        return f"is {kind}, whose values have no order"
    return None


def _unfit(name: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"Column {name!r} cannot be indexed: it {why}.",
        code="BAD_INDEX",
        name=name,
        remedy="Index a column, or a field of a struct, of a plain type.",
    )


def find(head: Head, name: str) -> IndexDefinition:
    """The index called ``name``, without regard to case. Raises ``NotFound`` (``INDEX_NOT_FOUND``) naming those there are."""
    for index in head.indexes:
        if index.name.lower() == str(name).lower():
            return index
    there = ", ".join(index.name for index in head.indexes) or "none"
    raise NotFound(f"There is no index {name!r}.", code="INDEX_NOT_FOUND", name=str(name), remedy=f"Indexes are: {there}.")


def with_index(head: Head, index: IndexDefinition) -> Head:
    """``head`` with one more index, and the feature that writers must know."""
    features = head.writer_features if FEATURE in head.writer_features else (*head.writer_features, FEATURE)
    return replace(head, indexes=(*head.indexes, index), writer_features=features)


def without_index(head: Head, index: IndexDefinition) -> Head:
    """``head`` without the index."""
    left = tuple(other for other in head.indexes if other.index_id != index.index_id)
    features = head.writer_features if left else tuple(f for f in head.writer_features if f != FEATURE)
    return replace(head, indexes=left, writer_features=features)


def users_of(head: Head, column_id: int) -> list[str]:
    """Names of the indexes that a column (or one below it) is part of: dropping it must be refused, naming them."""
    return [index.name for index in head.indexes if any(column_id in path for path in index.columns)]


def check_drop(head: Head, column_id: int, name: str) -> None:
    """Raises ``InvalidInput`` (``INDEXED_COLUMN``) where an index needs the column."""
    if users := users_of(head, column_id):
        raise InvalidInput(
            f"Column {name!r} is part of the index {users[0]!r}.",
            code="INDEXED_COLUMN",
            name=users[0],
            remedy=f"Drop the index {users[0]!r} first.",
        )


def schema_of(index: IndexDefinition, schema: Schema) -> Schema | None:
    """The schema of index parts that are built under a schema of the table; None where that lacks one of the columns, or has it under a type without an order."""
    fields = []
    for path in index.columns:
        field = schema.by_id.get(path[-1])
        if field is None or schema.paths.get(path[-1]) != path or obstacle(field) is not None:
            return None
        fields.append(Field(f"c{field.id}", field.type, True, field.id))
    position = (Field("part", INTEGER, False, PART), Field("row", INTEGER, False, ROW))
    return Schema((*fields, *position), schema.schema_id)


def schemas_of(index: IndexDefinition, head: Head) -> dict[int, Schema]:
    """The schemas of the index's parts by schema id of the table."""
    made = ((schema.schema_id, schema_of(index, schema)) for schema in head.schemas)
    return {schema_id: schema for schema_id, schema in made if schema is not None}


def names(index: IndexDefinition, head: Head) -> list[str]:
    """The indexed columns as they are called now; ``#id`` for one that is gone."""
    known = head.schema.by_id if head.schema else {}
    return [".".join(known[i].name if i in known else f"#{i}" for i in path) for path in index.columns]
