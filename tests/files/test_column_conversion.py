"""How the fields of a file are found: by id, else by name, each field looked at once."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.types import LONG, Field, Schema
from tamis.core.types.arrow import FIELD_ID
from tamis.storage.commit_log import Source
from tamis.storage.files.column_conversion import Names
from tamis.storage.files.parquet.foreign_columns import ForeignNames, foreign_names

SCHEMA = Schema(tuple(Field(name, LONG, id=at) for at, name in enumerate("abcA", 1)))
FIELDS = st.lists(
    st.builds(
        lambda name, column_id: pa.field(
            name, pa.int64(), metadata=None if column_id is None else {FIELD_ID: str(column_id).encode()}
        ),
        st.sampled_from("aAbBcx"),
        st.none() | st.integers(1, 6),
    ),
    max_size=7,
)
WANTED = [*SCHEMA.fields, Field("x", LONG, id=5), Field("y", LONG, id=6)]


def searched_position(names: Names, fields: list[pa.Field], column_id: int) -> int | None:
    """The simplest implementation: a search for each column."""
    ids = [None if f.metadata is None else int(f.metadata[FIELD_ID]) for f in fields]
    known = names.schema.by_id.get(column_id)
    if not isinstance(names, ForeignNames):
        if column_id in ids:
            return ids.index(column_id)
        return next((at for at, f in enumerate(fields) if known and ids[at] is None and f.name == known.name), None)
    if names.by_id:
        return ids.index(column_id) if column_id in ids else None
    name = names.column_names.get(column_id, None if known is None else known.name)
    if name is None:
        return None
    exact = [at for at, f in enumerate(fields) if f.name == name]
    near = [at for at, f in enumerate(fields) if f.name.lower() == name.lower()]
    if exact or names.exact:
        return exact[0] if exact else None
    return near[0] if len(near) == 1 else None


@given(FIELDS, st.sampled_from(["own", "parquet", "iceberg", "by id"]))
def test_fields_are_found_as_by_a_search_for_each(fields: list[pa.Field], kind: str) -> None:
    names = Names(SCHEMA)
    if kind != "own":
        source = Source(
            "s", "parquet" if kind == "by id" else kind, "", by_field_id=kind == "by id", column_names={2: "B"}
        )
        names = foreign_names(source, SCHEMA, pa.schema(fields))
    assert names.positions(fields, WANTED) == [searched_position(names, fields, f.id) for f in WANTED]


def test_each_field_is_looked_at_once() -> None:
    fields = [pa.field(f"c{at}", pa.int64(), metadata={FIELD_ID: str(at).encode()}) for at in range(1, 50)]
    seen: list[str] = []

    def source() -> Iterator[pa.Field]:
        for f in fields:
            seen.append(f.name)
            yield f

    wanted = [Field(f.name, LONG, id=at) for at, f in enumerate(reversed(fields), 1)]
    assert Names(Schema(tuple(wanted))).positions(source(), wanted) == list(range(49))
    assert len(seen) == len(fields)
