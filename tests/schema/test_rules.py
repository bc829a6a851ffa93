"""Every rule of migration at every nesting, with changes that it allows and changes that it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import tamis

INT = pa.int64()


def s(*fields: pa.Field) -> list[pa.Field]:
    return list(fields)


def f(name: str, kind: pa.DataType = INT, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable=nullable)


WRAPS: dict[str, Callable[[list[pa.Field]], pa.Schema]] = {
    "top": pa.schema,
    "struct": lambda fields: pa.schema([f("w", pa.struct(fields))]),
    "list": lambda fields: pa.schema([f("w", pa.list_(pa.struct(fields)))]),
    "map value": lambda fields: pa.schema([f("w", pa.map_(pa.string(), pa.struct(fields)))]),
    "deep": lambda fields: pa.schema([f("w", pa.list_(pa.struct([f("x", pa.map_(pa.string(), pa.struct(fields)))])))]),
}

# name: history (oldest first), the new schema, the rule that refuses it (None: legal)
CASES: dict[str, tuple[list[list[pa.Field]], list[pa.Field], str | None]] = {
    "identical": ([s(f("a"))], s(f("a")), None),
    "relax": ([s(f("a", nullable=False))], s(f("a")), None),
    "delete first": ([s(f("a"), f("b"))], s(f("b")), None),
    "delete required": ([s(f("a", nullable=False), f("b"))], s(f("b")), None),
    "add at end": ([s(f("a"))], s(f("a"), f("b")), None),
    "add at front": ([s(f("a"))], s(f("b"), f("a")), None),
    "add between": ([s(f("a"), f("c"))], s(f("a"), f("b"), f("c")), None),
    "several at once": ([s(f("a", nullable=False), f("b"), f("c"))], s(f("d"), f("a"), f("e"), f("c")), None),
    "names that differ by case are different": ([s(f("a"))], s(f("a"), f("A")), None),
    "tighten": ([s(f("a"))], s(f("a", nullable=False)), "TIGHTEN"),
    "relax then tighten": ([s(f("a", nullable=False)), s(f("a"))], s(f("a", nullable=False)), "TIGHTEN"),
    "add required": ([s(f("a"))], s(f("a"), f("b", nullable=False)), "ADD_REQUIRED"),
    "reorder": ([s(f("a"), f("b"))], s(f("b"), f("a")), "REORDER"),
    "reorder with an addition": ([s(f("a"), f("b"))], s(f("b"), f("c"), f("a")), "REORDER"),
    "drop '2' from '2', '10' is no reorder": ([s(f("2"), f("10"))], s(f("10")), None),
    "numeric names": ([s(*(f(str(i)) for i in range(12)))], s(*(f(str(i)) for i in range(12) if i != 2)), None),
    "re-add": ([s(f("a"), f("b")), s(f("b"))], s(f("b"), f("a")), "READD_DELETED"),
    "re-add long after": (
        [s(f("a"), f("b")), s(f("b")), s(f("b"), f("c"))],
        s(f("b"), f("c"), f("a")),
        "READD_DELETED",
    ),
    "narrow": ([s(f("a"))], s(f("a", pa.int32())), "TYPE_CHANGE"),
    "widen unasked": ([s(f("a", pa.int32()))], s(f("a")), "TYPE_CHANGE"),
    "scalar to struct": ([s(f("a"))], s(f("a", pa.struct([f("x")]))), "TYPE_CHANGE"),
    "list to large list": ([s(f("a", pa.list_(INT)))], s(f("a", pa.large_list(INT))), "TYPE_CHANGE"),
    "timestamp unit": ([s(f("a", pa.timestamp("us")))], s(f("a", pa.timestamp("ns"))), "TYPE_CHANGE"),
    "duplicate": ([s(f("a"))], s(f("a"), f("a")), "DUPLICATE_FIELD"),
    "relax an item": (
        [s(f("a", pa.list_(pa.field("element", INT, nullable=False))))],
        s(f("a", pa.list_(INT))),
        None,
    ),
    "tighten an item": (
        [s(f("a", pa.list_(INT)))],
        s(f("a", pa.list_(pa.field("element", INT, nullable=False)))),
        "TIGHTEN",
    ),
    "a map's key": ([s(f("a", pa.map_(pa.int32(), INT)))], s(f("a", pa.map_(INT, INT))), "MAP_KEY"),
    "a struct made nullable while its fields change": (
        [s(f("a", pa.struct([f("x"), f("y")]), nullable=False))],
        s(f("a", pa.struct([f("y"), f("z")]))),
        None,
    ),
}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("case", CASES)
def test_migration(case: str, wrap: str) -> None:
    history, new, rule = CASES[case]
    wrapped = [WRAPS[wrap](fields) for fields in history]
    if rule is None:
        tamis.schema.check_migration(wrapped, WRAPS[wrap](new))
        tamis.schema.check_reader(wrapped, WRAPS[wrap](new))
        return
    with pytest.raises(tamis.IncompatibleSchema) as refused:
        tamis.schema.check_migration(wrapped, WRAPS[wrap](new))
    assert refused.value.code == f"MIGRATION_{rule}"
    assert refused.value.name.split(".")[-1] in {field.name for field in new} | {"x", "element", "key"}
    assert refused.value.remedy


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("case", [name for name, (_, _, rule) in CASES.items() if rule is not None])
def test_reader_is_fenced_where_a_migration_is_refused(case: str, wrap: str) -> None:
    history, reader, rule = CASES[case]
    with pytest.raises(tamis.SchemaFenced) as fenced:
        tamis.schema.check_reader([WRAPS[wrap](fields) for fields in history], WRAPS[wrap](reader))
    assert fenced.value.code == f"FENCED_{rule}"


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("case", CASES)
def test_a_migration_type_stands_for_its_history(case: str, wrap: str) -> None:
    """Kept from step to step, it gives every verdict that the whole history gives, and memory of what each step deleted."""
    history, new, rule = CASES[case]
    known = tamis.schema.MigrationType()
    for fields in history:
        known = known.then(WRAPS[wrap](fields))
    assert known == tamis.schema.MigrationType.of([WRAPS[wrap](fields) for fields in history])
    if rule is None:
        tamis.schema.check_migration(known, WRAPS[wrap](new))
        tamis.schema.check_reader(known, WRAPS[wrap](new))
        return
    with pytest.raises(tamis.IncompatibleSchema) as refused:
        tamis.schema.check_migration(known, WRAPS[wrap](new))
    assert refused.value.code == f"MIGRATION_{rule}"
    with pytest.raises(tamis.SchemaFenced) as fenced:
        tamis.schema.check_reader(known, WRAPS[wrap](new))
    assert fenced.value.code == f"FENCED_{rule}"


def test_the_first_schema_is_free() -> None:
    tamis.schema.check_migration([], pa.schema([f("a", nullable=False)]))


WIDENINGS = [
    (pa.int8(), pa.int64(), True),
    (pa.int32(), pa.int64(), True),
    (pa.int64(), pa.int32(), False),
    (pa.float32(), pa.float64(), True),
    (pa.int32(), pa.float64(), False),
    (pa.decimal128(10, 2), pa.decimal128(12, 2), True),
    (pa.decimal128(10, 2), pa.decimal128(12, 4), True),
    (pa.decimal128(10, 2), pa.decimal128(11, 4), False),
    (pa.date32(), pa.timestamp("us"), True),
    (pa.date32(), pa.timestamp("us", "UTC"), False),
    (pa.string(), pa.large_string(), False),
]


@pytest.mark.parametrize(("old", "new", "legal"), WIDENINGS, ids=str)
def test_widening_is_asked_for(old: pa.DataType, new: pa.DataType, legal: bool) -> None:
    history = [pa.schema([f("a", old)])]
    with pytest.raises(tamis.IncompatibleSchema):
        tamis.schema.check_migration(history, pa.schema([f("a", new)]))
    if legal:
        tamis.schema.check_migration(history, pa.schema([f("a", new)]), widen=True)
    else:
        with pytest.raises(tamis.IncompatibleSchema):
            tamis.schema.check_migration(history, pa.schema([f("a", new)]), widen=True)
