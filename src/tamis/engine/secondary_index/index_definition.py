"""Index definitions: columns, the schema of index parts, and what may be indexed.

Invariant: an index follows column ids, never names. Index parts store the indexed columns under their own
column ids, so that statistics, pruning and the reader handle them like the table's columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tamis.core.types import BOOLEAN, INTEGER, NULL, VARIANT, Field, Map, Schema, String, Struct
from tamis.core.types.logical import BINARY_COLLATION
from tamis.engine.secondary_index.indexed_paths import UNSURE, parse_indexed_path, path_fits, path_text, type_of
from tamis.errors import AlreadyExists, InvalidInput, NotFound
from tamis.storage.commit_log import Head, IndexDefinition, IndexPath
from tamis.storage.object_store.lru_cache import LruCache
from tamis.world import new_id, world

PART = 2**31 - 2
"""Column id of the base part's ordinal within the index segment's coverage."""
ROW = 2**31 - 3
"""Column id of the physical row ordinal in that part."""
FEATURE = "indexes"
"""The required writer feature; a writer without it would drop the definitions when it changes the head."""


WAYS = ("auto", "off", "lookup", "plan")
"""The values of ``tamis.index.use`` besides index names; therefore not valid as index names."""


def given_names(given: Any) -> list[str]:
    """Return one or several names as a list; none for what holds no names."""
    return [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []


def define_index(head: Head, name: Any, columns: Sequence[str] | str, build: str, version: int) -> IndexDefinition:
    """Define an index of ``columns`` (names, dotted for struct fields).

    Raises ``AlreadyExists``, ``NotFound``, ``InvalidInput`` naming the invalid argument.
    """
    if not isinstance(name, str) or not name.strip() or name.strip().lower() in WAYS:
        raise InvalidInput(
            f"{name!r} cannot be the name of an index.", code="BAD_NAME", name=str(name), remedy="Give another name."
        )
    if any(index.name.lower() == name.lower() for index in head.indexes):
        raise AlreadyExists(
            f"There is an index {name!r} already.",
            code="INDEX_EXISTS",
            name=name,
            remedy="Drop it first, or say IF NOT EXISTS.",
        )
    if build not in {"with_write", "deferred"}:
        raise InvalidInput(
            f"An index cannot be built {build!r}.",
            code="BAD_OPTION",
            name="build",
            remedy="Give with_write or deferred.",
        )
    wanted = given_names(columns)
    if not wanted:
        raise InvalidInput("No column is indexed.", code="NO_COLUMNS", name="columns", remedy="Name at least one.")
    schema = head.schema or Schema(())
    found = [_found(schema, column, at) for at, column in enumerate(wanted)]
    paths = [path for path, _ in found]
    if twice := _twice(wanted, found):
        raise InvalidInput(f"Duplicate column {twice!r}.", code="DUPLICATE_COLUMN", name=twice, remedy="Name it once.")
    documents = tuple(path for _, path in found if path is not None)
    return IndexDefinition(new_id(), name, tuple(paths), build, version, world().now_micros(), documents)


def _twice(wanted: Sequence[str], found: Sequence[tuple[tuple[int, ...], IndexPath | None]]) -> str | None:
    """Return a column or path that is given twice, if any."""
    asked = [path if into is None else (path[:-1], into.path, into.type) for path, into in found]
    return next((column for at, column in enumerate(wanted) if asked[at] in asked[:at]), None)


def _found(schema: Schema, name: str, at: int) -> tuple[tuple[int, ...], IndexPath | None]:
    """Return the id path of a column, or of a path into documents."""
    try:
        return _path(schema, name), None
    except NotFound:
        into = parse_indexed_path(schema, name, at)
        if into is None:
            raise
        return into


def _path(schema: Schema, name: str) -> tuple[int, ...]:
    if not isinstance(name, str):
        raise InvalidInput(
            f"{name!r} is not a column name.", code="BAD_COLUMN", name=repr(name), remedy="Give names as text."
        )
    found = schema.resolve_name(name)
    for above in found[:-1]:
        if not isinstance(above.type, Struct):
            raise _unfit(name, f"stands inside {above.type}")
    if why := unindexable_reason(found[-1]):
        raise _unfit(name, why)
    return tuple(f.id for f in found)


def unindexable_reason(field: Field) -> str | None:
    """Return why a column cannot be indexed, as the end of a sentence, or None if it can."""
    kind = field.type
    if isinstance(kind, String) and kind.collation != BINARY_COLLATION:
        return f"is compared under the collation {kind.collation}"
    if isinstance(kind, Map) or kind in (VARIANT, NULL):
        return f"is {kind}, whose values have no order"
    if kind.children:
        return (
            f"is {kind}: arrays and structs are not indexed, for nothing keeps their bounds, "
            "and a look-up would read the whole index"
        )
    return None


def _unfit(name: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"Column {name!r} cannot be indexed: it {why}.",
        code="BAD_INDEX",
        name=name,
        remedy="Index a column, or a field of a struct, of a plain type.",
    )


def find_index(head: Head, name: str) -> IndexDefinition:
    """Return the index ``name``, ignoring case.

    Raises ``NotFound`` (``INDEX_NOT_FOUND``) listing the indexes.
    """
    for index in head.indexes:
        if index.name.lower() == str(name).lower():
            return index
    there = ", ".join(index.name for index in head.indexes) or "none"
    raise NotFound(
        f"There is no index {name!r}.", code="INDEX_NOT_FOUND", name=str(name), remedy=f"Indexes are: {there}."
    )


def check_use(head: Head, use: str) -> None:
    """Raise ``InvalidInput`` (``BAD_OPTION``) listing the choices if ``use`` is no mode or index."""
    if use.lower() not in WAYS and all(index.name.lower() != use.lower() for index in head.indexes):
        choices = ", ".join([*WAYS, *(index.name for index in head.indexes)])
        raise InvalidInput(
            f"Option tamis.index.use cannot be {use!r}: there is no such index.",
            code="BAD_OPTION",
            name="tamis.index.use",
            remedy=f"Give one of {choices}.",
        )


def with_index(head: Head, index: IndexDefinition) -> Head:
    """Add an index to ``head``, and the required writer feature."""
    features = head.writer_features if FEATURE in head.writer_features else (*head.writer_features, FEATURE)
    return replace(head, indexes=(*head.indexes, index), writer_features=features)


def without_index(head: Head, index: IndexDefinition) -> Head:
    """Remove the index from ``head``."""
    left = tuple(other for other in head.indexes if other.index_id != index.index_id)
    features = head.writer_features if left else tuple(f for f in head.writer_features if f != FEATURE)
    return replace(head, indexes=left, writer_features=features)


def users_of(head: Head, column_id: int) -> list[str]:
    """Return the names of the indexes that use a column or one below it, and so prevent dropping it."""
    return [index.name for index in head.indexes if any(column_id in path for path in index.columns)]


def check_drop(head: Head, column_id: int, name: str) -> None:
    """Raise ``InvalidInput`` (``INDEXED_COLUMN``) if an index needs the column."""
    if users := users_of(head, column_id):
        raise InvalidInput(
            f"Column {name!r} is part of the index {users[0]!r}.",
            code="INDEXED_COLUMN",
            name=users[0],
            remedy=f"Drop the index {users[0]!r} first.",
        )


def schema_of(index: IndexDefinition, schema: Schema) -> Schema | None:
    """Return the schema of index parts built under a table schema.

    None if that schema lacks an indexed column, or has it under a type without an order.
    """
    fields = []
    for path in index.columns:
        if path[-1] in index.by_path:
            document = schema.by_id.get(path[-2])
            if (
                document is None
                or schema.paths.get(path[-2]) != path[:-1]
                or not path_fits(document, index.by_path[path[-1]])
            ):
                return None
            fields.append(Field(f"c{path[-1]}", type_of(index.by_path[path[-1]]), True, path[-1]))
            continue
        field = schema.by_id.get(path[-1])
        if field is None or schema.paths.get(path[-1]) != path or unindexable_reason(field) is not None:
            return None
        fields.append(Field(f"c{field.id}", field.type, True, field.id))
    flag = (Field("unsure", BOOLEAN, False, UNSURE),) if index.paths else ()
    position = (Field("part", INTEGER, False, PART), Field("row", INTEGER, False, ROW))
    return Schema((*fields, *flag, *position), schema.schema_id)


_schemas = LruCache[tuple[Head, dict[int, Schema]]](2**20)


def schemas_of(index: IndexDefinition, head: Head) -> Mapping[int, Schema]:
    """Return index part schemas by table schema id; the same objects for the same head."""
    key = (id(head), index.index_id)
    found = _schemas.get(key)
    if found is None:
        made = ((schema.schema_id, schema_of(index, schema)) for schema in head.schemas)
        # the head is referenced, so that its id is not reused
        found = head, {schema_id: schema for schema_id, schema in made if schema is not None}
        _schemas.put(key, found, 4096 + 256 * len(head.schemas))
    return found[1]


def indexed_names(index: IndexDefinition, head: Head) -> list[str]:
    """Return the current names of the indexed columns.

    Paths have the form ``body:user.id::bigint``; dropped columns are ``#id``.
    """
    known = head.schema.by_id if head.schema else {}

    def called(ids: tuple[int, ...]) -> str:
        return ".".join(known[i].name if i in known else f"#{i}" for i in ids)

    return [
        path_text(index, path, called(path[:-1]), head.schema) if path[-1] in index.by_path else called(path)
        for path in index.columns
    ]
