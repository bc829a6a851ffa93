"""JSON functions give what Spark gives, for awkward documents, from SQL text and from Catalyst's trees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tamis.core import expr
from tamis.core.expr import Expr, Mode, Opaque
from tamis.core.expr.binding.binder import Binder
from tamis.core.expr.java_doubles import LEFT_TO_SPARK, spark_decides
from tamis.core.expr.syntax import parse_expression
from tamis.core.types import VARIANT
from tamis.core.types.arrow import to_arrow_type
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.jvm_bridge.catalyst import known_nodes, translate_filters
from tamis.spark.jvm_bridge.node_settings import zone_table
from tests.expr.documents import DOCUMENTS, NUMBER_WORDS, PATH_DOCUMENTS, PATHS, PHRASES, SCHEMA, TARGETS, TYPED
from tests.expr.oracle import plain
from tests.spark.capabilities import needs_syntax

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def frame(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    spark.conf.set(
        "spark.sql.variant.pushVariantIntoScan", "false"
    )  # of Parquet relations, tables of ours are never asked; casts would run before filters
    path = str(tmp_path_factory.mktemp("documents") / "rows")
    rows = spark.createDataFrame(list(enumerate(DOCUMENTS)), "n bigint, s string")
    rows.selectExpr("try_parse_json(s) v", "s", "n").coalesce(1).write.parquet(path)
    yield spark.read.parquet(path)
    spark.conf.unset("spark.sql.variant.pushVariantIntoScan")


@pytest.fixture(scope="module")
def columns(frame: Any) -> dict[int, pa.Array]:
    """The same rows in Arrow, read without Spark (which cannot hand over a VARIANT that is NULL)."""
    rows = pq.read_table(frame.inputFiles()[0].removeprefix("file:")).sort_by("n")
    stored = rows["v"].combine_chunks()
    kind = to_arrow_type(VARIANT)
    parts = [pc.fill_null(stored.field(f.name), b"") for f in kind]
    return {
        1: pa.StructArray.from_arrays(parts, fields=list(kind), mask=stored.is_null()),
        2: rows["s"].combine_chunks().cast(pa.string()),
        3: rows["n"].combine_chunks(),
    }


def bound(text: str) -> Expr:
    return Binder(SCHEMA, "UTC", Mode.ANSI, text).bind(parse_expression(text))


def ours(tree: Expr, columns: dict[int, pa.Array], length: int = len(DOCUMENTS)) -> tuple[list[Any], list[bool]]:
    out = expr.evaluate(tree, columns, length)
    return plain(out.values), [False] * length if out.failed is None else out.failed.tolist()


def theirs(spark: Any, wanted: list[tuple[str, list[int]]]) -> list[Any]:
    """Spark's values of each text, NULL where it is not asked; an error's text instead of the values of one that raises there."""
    shown = ", ".join(
        f"CASE WHEN n IN ({', '.join(map(str, [-1, *rows]))}) THEN {text} END c{i}"
        for i, (text, rows) in enumerate(wanted)
    )
    try:
        return [plain(c) for c in spark.sql(f"SELECT {shown} FROM documents ORDER BY n").toArrow().columns]
    except Exception as error:
        if len(wanted) == 1:
            return [f"raises {str(error)[:200]}"]
        half = len(wanted) // 2
        return theirs(spark, wanted[:half]) + theirs(spark, wanted[half:])


def test_values(spark: Any, frame: Any, columns: dict[int, pa.Array]) -> None:
    """Values where we have one; no error there."""
    frame.createOrReplaceTempView("documents")
    needs_syntax(spark, "SELECT v:a::int")
    (strict,) = spark.sql("""SELECT try_parse_json('"\\\\ud800"') IS NULL""").first()
    mine: list[tuple[list[Any], list[bool]]] = []
    for text in PHRASES:
        tree = bound(text)
        assert not any(isinstance(n, Opaque) for n in tree.walk()), text
        with nullcontext() if strict else spark_decides():  # an older Spark reads unpaired surrogates
            mine.append(ours(tree, columns))
    wanted = [
        (text, [n for n, bad in enumerate(failed) if not bad]) for text, (_, failed) in zip(PHRASES, mine, strict=True)
    ]
    wrong: list[str] = []
    for (text, rows), (values, _), found in zip(wanted, mine, theirs(spark, wanted), strict=True):
        if isinstance(found, str):
            wrong.append(f"{text} {found}")
        else:
            wrong += [
                f"{text} of {DOCUMENTS[n]!r}: ours {values[n]!r}, Spark {found[n]!r}"
                for n in rows
                if values[n] != found[n]
            ]
    assert "\n".join(wrong) == ""


def test_failures(spark: Any, frame: Any, columns: dict[int, pa.Array]) -> None:
    """Where we fail, Spark raises: by its try_ form that has nothing there."""
    frame.createOrReplaceTempView("documents")
    for text in PHRASES:
        if not text.startswith("variant_get"):
            continue
        _, failed = ours(bound(text), columns)
        bad = [str(n) for n, out in enumerate(failed) if out]
        found = (
            bad
            and spark.sql(
                f"SELECT n, try_{text} c FROM documents WHERE n IN ({','.join(bad)}) AND try_{text} IS NOT NULL"
            ).collect()
        )
        assert found == [], text


CONDITIONS = [
    "try_variant_get(v, '$.a', 'int') = 1", "v:a.b IS NULL", "is_variant_null(v:a)", "try_variant_get(v, '$.a.b', 'string') = 'x'", "cast(v:a AS STRING) LIKE '1%'", "v:a[1]::string = '[3]'",
    "get_json_object(s, '$.a') = '1'", "get_json_object(s, '$.a.b') IN ('1', '4', 'x')", "try_cast(get_json_object(s, '$.a') AS DOUBLE) > 1", "from_json(s, 'a INT, b STRING').a = 1",
    "from_json(s, 'a STRUCT<b: INT, c: STRING>').a.b >= 1", "try_variant_get(try_parse_json(s), '$.a', 'int') < 5", "get_json_object(s, '$.a') = 'x' OR from_json(s, 'a DOUBLE').a = 1.5",
]  # fmt: skip


def test_catalyst_means_the_same(spark: Any, frame: Any, columns: dict[int, pa.Array]) -> None:
    needs_syntax(spark, "SELECT v:a::int")
    owner = bridge_of(spark)
    for text in CONDITIONS:
        plan = frame.where(text)._jdf.queryExecution().optimizedPlan()
        while plan.getClass().getSimpleName() != "Filter":
            plan = plan.child()
        found = translate_filters(
            owner.helper("TreeText").render(owner.seq([plan.condition()]), known_nodes()), SCHEMA, zone_table(owner)
        ).conjuncts
        assert not [n for c in found for n in c.walk() if isinstance(n, Opaque)], f"{text}: {found}"
        keep, failed, error = expr.filter_mask(found, columns, len(DOCUMENTS))
        left = set(failed.nonzero()[0].tolist())
        assert not left or (error == LEFT_TO_SPARK and "STRUCT" in text), text
        rows = sorted(r.n for r in frame.where(text).select("n").collect())
        assert [n for n, kept in enumerate(keep.tolist()) if kept] == [n for n in rows if n not in left], text
        again = expr.filter_mask(expr.conjuncts_of(expr.parse_predicate(text, SCHEMA)), columns, len(DOCUMENTS))[0]
        assert (again == keep).all(), text


def test_options_are_not_understood(spark: Any, frame: Any) -> None:
    owner = bridge_of(spark)
    plan = frame.where("from_json(s, 'a INT', map('mode', 'FAILFAST')).a = 1")._jdf.queryExecution().optimizedPlan()
    while plan.getClass().getSimpleName() != "Filter":
        plan = plan.child()
    found = translate_filters(
        owner.helper("TreeText").render(owner.seq([plan.condition()]), known_nodes()), SCHEMA, zone_table(owner)
    ).conjuncts
    assert any(isinstance(n, Opaque) for c in found for n in c.walk())


@pytest.fixture(scope="module")
def typed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, pa.Array]]:
    """Typed values below the key a, as Spark's frame and as an Arrow column."""
    settings = ("spark.sql.variant.pushVariantIntoScan", "spark.sql.variant.inferShreddingSchema")
    for name in settings:
        spark.conf.set(name, "false")
    rows = " UNION ALL ".join(
        f"SELECT {n} n, to_variant_object(named_struct('a', {value})) v" for n, value in enumerate(TYPED)
    )
    path = str(tmp_path_factory.mktemp("typed") / "rows")
    spark.sql(rows).coalesce(1).write.parquet(path)
    frame = spark.read.parquet(path)
    stored = pq.read_table(frame.inputFiles()[0].removeprefix("file:")).sort_by("n")["v"].combine_chunks()
    kind = to_arrow_type(VARIANT)
    yield frame, pa.StructArray.from_arrays([stored.field(f.name) for f in kind], fields=list(kind))
    for name in settings:
        spark.conf.unset(name)


def left_to_spark(value: str, target: str) -> bool:
    """Whether a typed value is read as this type by Spark alone."""
    narrow = target in {"tinyint", "smallint", "float"} or target.startswith("decimal")
    return (value.startswith("TIMESTAMP'") and narrow) or (value.startswith("X'") and target == "string")


def test_casts_of_typed_values(spark: Any, typed: tuple[Any, pa.Array]) -> None:
    """Each kind of value as each type: what Spark gives, or left to Spark, but never NULL where Spark has a value."""
    frame, column = typed
    frame.createOrReplaceTempView("typed_values")
    texts = [f"try_variant_get(v, '$.a', '{target}')" for target in TARGETS]
    found = spark.sql(
        f"SELECT {', '.join(f'{text} c{i}' for i, text in enumerate(texts))} FROM typed_values ORDER BY n"
    )
    wrong = []
    for target, text, wanted in zip(TARGETS, texts, found.toArrow().columns, strict=True):
        values, failed = ours(bound(text), {1: column}, len(TYPED))
        strict_failed = ours(bound(text.removeprefix("try_")), {1: column}, len(TYPED))[1]
        for n, (value, want) in enumerate(zip(TYPED, plain(wanted), strict=True)):
            left = left_to_spark(value, target)
            null = value == "CAST(NULL AS INT)"
            if failed[n] != left or not (left or values[n] == want):
                wrong.append(f"{value} as {target}: ours {'left' if failed[n] else values[n]!r}, Spark {want!r}")
            if strict_failed[n] != (left or (want is None and not null)):
                wrong.append(f"{value} as {target} must fail where Spark has no value")
    assert "\n".join(wrong) == ""


def test_rows_left_to_spark_say_so(typed: tuple[Any, pa.Array]) -> None:
    """A cast that cannot fail never ends as a failed cast."""
    for text in ("try_variant_get(v, '$.a', 'tinyint')", "try_variant_get(v, '$.a', 'string')"):
        out = expr.evaluate(bound(text), {1: typed[1]}, len(TYPED))
        assert (out.error or "").startswith("[LEFT_TO_SPARK]"), text


def as_sql(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def test_paths_of_both_grammars(spark: Any) -> None:
    """A path that is understood gives what Spark gives; all others are left to Spark."""
    rows = spark.createDataFrame(list(enumerate(PATH_DOCUMENTS)), "n bigint, s string").coalesce(1).cache()
    texts, wrong = pa.array(PATH_DOCUMENTS), []
    for text in (f"{call}, {as_sql(p)}{rest}" for p in PATHS for call, rest in (("get_json_object(s", ")"), ("try_variant_get(try_parse_json(s)", ", 'string')"))):  # fmt: skip
        tree = bound(text)
        if any(isinstance(n, Opaque) for n in tree.walk()):
            continue
        try:
            found = [r.c for r in rows.selectExpr("n", f"{text} c").orderBy("n").collect()]
        except Exception as error:
            wrong.append(f"{text} raises {str(error)[:100]}")
            continue
        values, failed = ours(tree, {2: texts}, len(PATH_DOCUMENTS))
        if any(failed) or values != found:
            wrong.append(f"{text}: ours {values}, Spark {found}")
    rows.unpersist()
    assert "\n".join(wrong) == ""


def test_words_for_numbers(spark: Any) -> None:
    """NaN and infinities, quoted and bare, as FROM_JSON and the others read them."""
    rows = spark.createDataFrame(list(enumerate(NUMBER_WORDS)), "n bigint, s string").coalesce(1)
    asked = [
        *(f"from_json(s, 'a {kind}').a" for kind in ("DOUBLE", "FLOAT", "STRING", "INT", "BOOLEAN")),
        "get_json_object(s, '$.a')", "get_json_object(s, '$.a[0]')", "try_cast(get_json_object(s, '$.a') AS DOUBLE)", "try_cast(get_json_object(s, '$.a') AS FLOAT)",
        "try_variant_get(try_parse_json(s), '$.a', 'double')", "try_variant_get(try_parse_json(s), '$.a', 'float')",
    ]  # fmt: skip
    found = rows.selectExpr("n", *(f"{text} c{i}" for i, text in enumerate(asked))).orderBy("n").toArrow()
    wrong = []
    for i, text in enumerate(asked):
        values, failed = ours(bound(text), {2: pa.array(NUMBER_WORDS)}, len(NUMBER_WORDS))
        for document, value, bad, want in zip(NUMBER_WORDS, values, failed, plain(found[f"c{i}"]), strict=True):
            if bad or value != want:
                wrong.append(f"{text} of {document}: ours {value!r}, Spark {want!r}")
    assert "\n".join(wrong) == ""


def test_the_field_of_corrupt_records_is_not_understood(spark: Any, frame: Any) -> None:
    """It has the text of a document that does not fit, under the name that the session gives it."""

    def opaque(text: str) -> bool:
        owner = bridge_of(spark)
        plan = frame.where(text)._jdf.queryExecution().optimizedPlan()
        while plan.getClass().getSimpleName() != "Filter":
            plan = plan.child()
        found = translate_filters(
            owner.helper("TreeText").render(owner.seq([plan.condition()]), known_nodes()), SCHEMA, zone_table(owner)
        ).conjuncts
        return any(isinstance(n, Opaque) for c in found for n in c.walk())

    default = "from_json(s, 'a INT, _corrupt_record STRING')._corrupt_record IS NULL"
    other = "from_json(s, 'a INT, bad STRING').bad IS NULL"
    inner = "from_json(s, 'a STRUCT<_corrupt_record: STRING>').a._corrupt_record IS NULL"
    assert isinstance(bound("from_json(s, 'a INT, _corrupt_record STRING')._corrupt_record"), Opaque)
    assert not isinstance(bound("from_json(s, 'a STRUCT<_corrupt_record: STRING>').a._corrupt_record"), Opaque)
    assert [opaque(text) for text in (default, other, inner)] == [True, False, False]
    spark.conf.set("spark.sql.columnNameOfCorruptRecord", "bad")
    try:
        assert [opaque(text) for text in (default, other, inner)] == [False, True, False]
    finally:
        spark.conf.unset("spark.sql.columnNameOfCorruptRecord")
    for name in ("spark.sql.json.enablePartialResults", "spark.sql.json.enableExactStringParsing"):
        spark.conf.set(name, "false")
        try:
            assert opaque("from_json(s, 'a STRUCT<b: INT, c: INT>').a.b IS NULL"), name
        finally:
            spark.conf.unset(name)
