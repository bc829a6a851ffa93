"""Paths of documents kept beside them: filters give what they give over the documents, and read little."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.core.expr import column_paths, conjuncts_of, parse_predicate
from tamis.core.expr.json_codec import variant_bytes, variant_columns, variant_extraction
from tamis.core.expr.json_codec.variant_encoding import encode_variant
from tamis.core.expr.json_codec.variant_extraction import separate_documents
from tamis.core.types import LONG, STRING, VARIANT, Field, Schema
from tamis.core.types.arrow import to_arrow_schema, to_arrow_type
from tamis.engine.part_reader.leaf_filter import rewrite_to_leaves
from tamis.engine.part_writer.document_shredding import Shredder
from tamis.errors import InvalidInput
from tamis.storage.files.parquet import parquet_part
from tamis.storage.files.shredded_leaves import FIRST, LEAVES, decode_leaves, encode_leaves, leaves_for, with_leaves
from tamis.storage.object_store import open_store

SCHEMA = Schema((Field("id", LONG, id=1), Field("v", VARIANT, id=2), Field("s", STRING, id=3)))
SHRED = {"tamis.write.shred": "v:a, v:o.x[1], v:['odd key'], s:a, s:o.x[1], id:a, nowhere:b"}
KINDS: list[Any] = [
    None, True, False, 0, 7, -1, 127, 128, -40_000, 2**31, -(2**63), 2**63, 10**30, 1.5, -0.0, 1e300, 19.99, "", "7", "x" * 63, "y" * 64, "é" * 200,
    "2020-01-01", "true", [], [1, [2]], {}, {"x": [3, "four"]}, {"b": {"c": None}},
]  # fmt: skip
CASTS = ("int", "bigint", "smallint", "double", "float", "decimal(10,2)", "boolean", "string", "date", "timestamp")
TESTS = ("= {c}", "IS NULL", "IS NOT NULL", "<> {c}")
SOME = {"string": "'7'", "boolean": "true", "date": "DATE'2020-01-01'", "timestamp": "TIMESTAMP'1970-01-01 00:00:07'"}


def document(chance: np.random.Generator) -> str | None:
    if chance.random() < 0.1:
        return None
    pick = lambda: KINDS[chance.integers(len(KINDS))]  # noqa: E731
    whole: Any = {key: pick() for key in ("a", "odd key", "z") if chance.random() < 0.8}
    if chance.random() < 0.7:
        whole["o"] = {"w": pick(), "x": [pick() for _ in range(chance.integers(4))]}
    return json.dumps(pick() if chance.random() < 0.1 else whole, ensure_ascii=False)


def table_of(texts: Sequence[str | None], start: int = 0) -> pa.Table:
    pairs = [None if t is None else encode_variant(t) for t in texts]
    children = [pa.array([b"" if p is None else p[k] for p in pairs], pa.binary()) for k in (0, 1)]
    documents = pa.StructArray.from_arrays(
        children, fields=list(to_arrow_type(VARIANT)), mask=pa.array([p is None for p in pairs])
    )
    ids = pa.array(range(start, start + len(texts)), pa.int64())
    return pa.Table.from_arrays([ids, documents, pa.array(texts, pa.string())], schema=to_arrow_schema(SCHEMA))


def both(folder: Path, data: pa.Table, form: str) -> tuple[Any, Any]:
    made = [
        tamis.create(folder / name, data.schema, format=form, properties=how)
        for name, how in (("plain", {}), ("shredded", SHRED))
    ]
    for table in made:
        table.append(data)
    return made[0], made[1]


def outcome(table: Any, text: str, columns: tuple[str, ...] = ("id",), **options: str) -> Any:
    try:
        return table.scan(text, columns, options={"tamis.stats.filter": "off", **options}).to_arrow().to_pylist()
    except InvalidInput as error:
        return error.code, str(error)


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("form", ["parquet", "vortex", "orc"])
def test_every_kind_under_every_cast(tmp_path: Path, form: str) -> None:
    chance = np.random.default_rng(len(form))
    plain, shredded = both(tmp_path, table_of([document(chance) for _ in range(250)]), form)
    filters = [f"is_variant_null(variant_get(v, '$.{path}'))" for path in ("a", "o.x[1]")]
    for kind in CASTS:
        for path in ("$.a", "$.o.x[1]", "$['odd key']"):
            test = TESTS[chance.integers(len(TESTS))].format(c=SOME.get(kind, "7"))
            filters += [f"try_variant_get(v, '{path}', '{kind}') {test}", f"variant_get(v, '{path}', '{kind}') {test}"]
    filters += [
        f"get_json_object(s, '{path}') {test.format(c=chr(39) + '7' + chr(39))}"
        for path in ("$.a", "$.o.x[1]")
        for test in TESTS
    ]
    filters += [
        "try_variant_get(v, '$.a', 'int') = 7 OR get_json_object(s, '$.a') = 'true'",
        "try_variant_get(v, '$.a', 'int') > 0 AND id % 2 = 0",
    ]
    failed = 0
    for text in filters if form == "parquet" else filters[::4]:
        found = outcome(shredded, text)
        assert found == outcome(plain, text), text
        failed += isinstance(found, tuple)
    assert form != "parquet" or 5 < failed < len(filters) - 20
    assert outcome(shredded, filters[2], ("*",)) == outcome(plain, filters[2], ("*",))


@pytest.mark.push_cases(1)
@pytest.mark.parametrize("form", ["parquet", "vortex", "orc"])
def test_few_bytes_are_read(tmp_path: Path, form: str) -> None:
    noise = np.random.default_rng(1)
    rows = [{"a": n % 1000, "note": noise.bytes(200).hex()} for n in range(8_000)]
    plain, shredded = both(tmp_path, table_of([json.dumps(row) for row in rows]), form)
    read = {}
    for text in ("try_variant_get(v, '$.a', 'int') = 77", "get_json_object(s, '$.a') = '77'"):
        for name, table in (("plain", plain), ("shredded", shredded)):
            scan = table.scan(text, ("id",))
            assert scan.to_arrow()["id"].to_pylist() == list(range(77, 8_000, 1000))
            read[name] = scan.report.bytes["leader"]
        assert read["shredded"] < 0.3 * read["plain"]


def leaves_of(table: Any) -> list[tuple[int, ...]]:
    """The documents of which each part has leaves."""
    store = table.scan().plan().spec.url
    found = []
    for ref in table.scan().plan().parts:
        opened = parquet_part.open_parquet(open_store(store), ref, SCHEMA)
        found.append(tuple(leaf.column for leaf in opened.leaves))
    return found


def test_whoever_writes_a_part_shreds_it(tmp_path: Path) -> None:
    texts = [json.dumps({"a": n}) for n in range(50)]
    table = tamis.create(tmp_path / "t", to_arrow_schema(SCHEMA), properties=SHRED)
    table.append(table_of(texts))
    table.append(table_of(texts, 50))
    table.update({"s": "'{\"a\": -1}'"}, "id = 3")
    table.delete("id = 4")
    assert leaves_of(table) == [(2, 2, 2, 3, 3)] * 3
    table.compact()
    assert leaves_of(table) == [(2, 2, 2, 3, 3)]
    assert outcome(table, "get_json_object(s, '$.a') = '-1'") == [{"id": 3}]
    assert outcome(table, "try_variant_get(v, '$.a', 'int') IN (3, 4) AND id < 50") == [{"id": 3}]
    table.alter().rename_column("v", "w").commit()
    table.refresh()
    assert outcome(table, "try_variant_get(w, '$.a', 'int') = 9 AND id < 50") == [{"id": 9}]


def test_a_document_that_is_needed_anyway_is_read_alone() -> None:
    leaves = leaves_for(SCHEMA, ((2, "$.a"), (3, "$.a")))

    def asked(text: str) -> set[int]:
        return {
            ids[0]
            for c in rewrite_to_leaves(conjuncts_of(parse_predicate(text, SCHEMA)), leaves)
            for ids in column_paths(c)
        }

    assert asked("v:a::int = 7 AND id = 1") == {FIRST, 1}
    assert asked("v:a::int = 7 AND v:b::int = 1 AND get_json_object(s, '$.a') = 'x'") == {2, FIRST + 1}
    assert asked("v:a::int = 7 OR v IS NULL") == {2}
    assert asked("get_json_object(s, '$.a') = 'x' AND s LIKE 'y%'") == {3}


def test_a_damaged_document_makes_no_leaf() -> None:
    block = table_of(['{"a": "text"}', '{"a": "text"}']).to_batches()[0]
    value = block.column(1).field("value").to_pylist()
    bad = value[0][: value[0].index(b"text")] + b"te"  # ends within the text
    column = pa.StructArray.from_arrays(
        [pa.array([bad, value[1]], pa.binary()), block.column(1).field("metadata")], fields=list(block.column(1).type)
    )
    shredder = Shredder(SCHEMA, ((2, "$.a"), (3, "$.a")))
    assert [leaf.column for leaf in decode_leaves(shredder.notes[LEAVES])] == [2, 3]
    shredder.add(pa.RecordBatch.from_arrays([block.column(0), column, block.column(2)], schema=block.schema))
    assert [leaf.column for leaf in decode_leaves(shredder.notes[LEAVES])] == [3]
    beside = shredder.add(block).column(3)
    assert beside.null_count == len(block)
    assert not beside.field("value").null_count, "Parquet refuses NULL there"


@pytest.mark.parametrize(("number", "leaves"), [("2E23", [2]), ("7.9248121131225648E16", [2]), ("1.5", [2, 3])])
def test_a_text_that_depends_on_java_makes_no_leaf(number: str, leaves: list[int]) -> None:
    """Spark's own text of it is known to Spark alone; the VARIANT's leaf holds the number."""
    shredder = Shredder(SCHEMA, ((2, "$.a"), (3, "$.a")))
    shredder.add(table_of([f'{{"a": {number}}}', '{"a": 1}']).to_batches()[0])
    assert [leaf.column for leaf in decode_leaves(shredder.notes[LEAVES])] == leaves


@pytest.mark.parametrize("form", ["parquet", "vortex", "orc"])
def test_leaves_beside_one_that_is_in_doubt(tmp_path: Path, form: str) -> None:
    """What a part does not vouch for is in its file all the same: the other leaves are found beside it."""
    texts = [json.dumps({"a": 2e23 if n == 3 else n, "b": n % 7, "c": n % 5, "d": n % 3}) for n in range(60)]
    data = table_of(texts)
    table = tamis.create(
        tmp_path / "t", data.schema, format=form, properties={"tamis.write.shred": "s:a, s:b, v:a, s:c, v:d"}
    )
    table.append(data)
    for text, kept in (
        ("get_json_object(s, '$.b') = '2'", lambda n: n % 7 == 2),
        ("get_json_object(s, '$.c') = '2'", lambda n: n % 5 == 2),
        ("try_variant_get(v, '$.d', 'int') = 2", lambda n: n % 3 == 2),
        ("try_variant_get(v, '$.a', 'int') = 2 OR get_json_object(s, '$.c') = '4'", lambda n: n == 2 or n % 5 == 4),
    ):
        assert outcome(table, text) == [{"id": n} for n in range(60) if kept(n)], text


def test_scalars_stand_alone() -> None:
    texts = [json.dumps({"a": value, "noise": "n" * 50}) for value in KINDS]
    column = table_of([*texts, None, "{}"])["v"].combine_chunks()
    found, sound = separate_documents(column, variant_columns.at_path(variant_columns.nodes(column), ("a",)))
    assert sound
    scalars = [at for at, value in enumerate(KINDS) if not isinstance(value, list | dict)]
    for at in scalars:
        assert (found[at]["value"].as_py(), found[at]["metadata"].as_py()) == (
            encode_variant(json.dumps(KINDS[at]))[0],
            variant_extraction.NO_NAMES,
        )
    assert found[len(KINDS)].as_py() is None
    assert found[len(KINDS) + 1].as_py() is None


def test_notes_that_say_something_else_say_nothing() -> None:
    leaves = leaves_for(SCHEMA, ((2, "$.a"), (2, "$.a"), (3, "$.b[0]"), (1, "$.c"), (9, "$.d"), (2, "$"), (2, "a b")))
    assert [(leaf.column, leaf.path, leaf.field.id) for leaf in leaves] == [(2, "$.a", FIRST), (3, "$.b[0]", FIRST + 1)]
    assert decode_leaves(encode_leaves(leaves)) == leaves
    earlier = encode_leaves(leaves).replace("get_json_object", "string")
    assert decode_leaves(earlier) == tuple(leaf for leaf in leaves if leaf.field.type != STRING)
    assert earlier != encode_leaves(leaves)
    assert with_leaves(SCHEMA, leaves) is with_leaves(SCHEMA, decode_leaves(encode_leaves(leaves)))
    for note in (
        "",
        "{",
        "7",
        "[7]",
        '[[2, "$.a", 7, "x", "variant"]]',
        '[[2, "$.a", 1073741824, "x", "interval"]]',
        '[[2, "wild", 1073741824, "x", "variant"]]',
    ):
        assert decode_leaves(note) == ()


def test_names_of_leaves_are_free() -> None:
    taken = Schema((Field("_tamis_leaf_0", VARIANT, id=1),))
    (leaf,) = leaves_for(taken, ((1, "$.a"),))
    assert leaf.field.name == "_tamis_leaf_0_"


def test_the_bytes_of_numbers() -> None:
    """Sizes of scalars that JSON text does not make."""
    headers = {3: 1, 4: 2, 5: 4, 6: 8, 7: 8, 8: 5, 9: 9, 10: 17, 11: 4, 12: 8, 13: 8, 14: 4}
    for code, width in headers.items():
        raw = bytes([code << 2]) + b"\0" * width
        data = np.frombuffer(raw + b"\0" * variant_bytes.PADDING, np.uint8)
        nodes = variant_columns.Nodes(data, np.array([0]), np.array([0]), ((),))
        assert variant_extraction._sizes(nodes).tolist() == [len(raw)]
