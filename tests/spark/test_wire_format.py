"""What Python and Java exchange: ``jvm_bridge.wire_format`` describes it, and both sides keep to it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyspark
import pytest

import tamis.spark.jvm_bridge as package
from tamis.spark.jvm_bridge import wire_format
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.jvm_bridge.catalyst_literals import data_type
from tamis.spark.scan import parquet_filter, scan_metrics

JAVA = Path(package.__file__).parent / "java"
JARS = Path(pyspark.__file__).parent / "jars"


def source(name: str) -> str:
    return (JAVA / f"{name}.java").read_text()


def quoted(text: str) -> set[str]:
    return set(re.findall(r'equals\("(\w+)"\)', text))


def between(text: str, start: str, end: str) -> str:
    return text.split(start, 1)[1].split(end, 1)[0]


def test_both_sides_name_the_mark_alike() -> None:
    for name in ("Pushed", "ScanBuilders"):
        assert f'MARK = "{wire_format.PUSHED_MARK}"' in source(name)
    assert f'UNREADABLE = "{wire_format.UNREADABLE}"' in source("ScanBuilders")


def test_java_reads_the_words_of_filters_that_python_writes() -> None:
    text = source("Partitions")
    read = quoted(between(text, "private static Filter filter(", "private static Object constant("))
    assert read == wire_format.FILTER_WORDS
    assert {*parquet_filter._TURNED, "and", "or", "in", "is_null", "is_not_null", "starts_with"} == read
    constants = quoted(between(text, "private static Object constant(", "noMap()"))
    assert constants == wire_format.CONSTANT_WORDS
    assert {*parquet_filter._KINDS.values(), "string", "decimal"} == constants


def test_python_knows_the_types_of_packed_keys() -> None:
    packed = set(re.findall(r'"(\w+)"', between(source("JoinKeys"), "NUMBERS =", ";")))
    assert packed == wire_format.NUMBER_WORDS
    for name in packed:
        data_type(name)  # raises for an unknown one


def test_both_sides_know_the_fields_of_a_line_of_executions() -> None:
    field_list = between(source("Executions"), "line holds, separated by spaces:", "Of an execution that failed")
    assert len(field_list.split(";")) == len(wire_format.EXECUTION_FIELDS)
    assert f"{', '.join(wire_format.EXECUTION_FIELDS)} = line.split" in Path(scan_metrics.__file__).read_text()


WORDS = ["", "a", "näme ☃", "`b`.c", "line\nbreak", "😀", " "]


@pytest.mark.spark
def test_lists_and_maps_come_back(spark: Any) -> None:
    java = bridge_of(spark)
    for words in ([], [""], ["", ""], WORDS):
        assert java.texts(java.list(words)) == tuple(words)
    assert java.dict(java.map({word: word[::-1] for word in WORDS})) == {word: word[::-1] for word in WORDS}
    identifier = java.cls("org.apache.spark.sql.connector.catalog.Identifier")
    made = identifier.of(java.array("java.lang.String", WORDS[:-1]), WORDS[-1])
    assert java.identifier(made) == tuple(WORDS)


@pytest.mark.spark
def test_java_reads_every_operator_and_constant(spark: Any) -> None:
    java = bridge_of(spark)
    constants = dict.fromkeys(wire_format.CONSTANT_WORDS, "1")
    for operator in sorted(wire_format.FILTER_WORDS - {"and", "or", "is_null", "is_not_null", "in", "starts_with"}):
        for kind, value in constants.items():
            made = java.helper("Partitions").filters(wire_format.words_text([operator, "c", kind, value]))
            assert [f.references()[0] for f in made] == ["c"], (operator, kind)
    nested = ["and", "or", "is_null", "a", "is_not_null", "b", "in", "c", "long", "2", "1", "2"]
    (made,) = java.helper("Partitions").filters(wire_format.words_text(nested))
    assert str(made.toString()) == "And(Or(IsNull(a),IsNotNull(b)),In(c, [1,2]))"


@pytest.mark.slow
def test_java_compiles_without_warnings(tmp_path: Path) -> None:
    """By a compiler stricter than Janino. Janino has no generics, so raw types and casts are needed."""
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("no javac: only a JRE is installed")
    # path: the manifests of jars that come with Spark name others that do not
    lint = "-Xlint:all,-path,-cast,-rawtypes,-unchecked,-serial"
    done = subprocess.run(
        [compiler, lint, "-Werror", "-proc:none", "-d", tmp_path, "-cp", JARS / "*", *sorted(JAVA.glob("*.java"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
