"""The page of functions is complete: every function that the installed Spark lists has a rule, or the reason why it has none."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tamis
from tamis.core import expr
from tamis.core.expr.tree import Opaque
from tamis.spark.sql.table_changes import NAME

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def pages() -> Iterator[ModuleType]:
    """The module ``docs/which_filters.py``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("which_filters")


@pytest.fixture(scope="module")
def functions(pages: ModuleType) -> ModuleType:
    """The module ``docs/spark_functions.py``."""
    found: ModuleType = pages.spark_functions
    return found


@pytest.fixture(scope="module")
def table(pages: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    made: tamis.Table = pages._table(str(tmp_path_factory.mktemp("page") / "t"))
    return made


def listed(spark: Any) -> set[str]:
    return {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()} - {NAME}  # that one is ours


def disagreements(spark_names: set[str], functions: ModuleType) -> dict[str, set[str]]:
    """Functions that the page leaves out, or of which it says the wrong thing."""
    reasons = set(functions.reasons())
    ruled = {name for name in spark_names if functions.has_rule(name)}
    return {
        "neither rule nor reason": spark_names - reasons - ruled,
        "a rule and a reason": {name for name in reasons if functions.has_rule(name)},
        "neither declared nor shown": ruled - functions.declared_names() - set(functions.OTHER_NAMES),
    }


def test_every_function_has_a_rule_or_a_reason(spark: Any, functions: ModuleType) -> None:
    names = listed(spark)
    assert len(names) > 480, "Spark was not asked"  # Spark 4.0 has 485
    assert not {what: found for what, found in disagreements(names, functions).items() if found}
    if spark.version >= "4.3":
        assert set(functions.reasons()) | set(functions.OTHER_NAMES) <= names, "Spark knows no such function"


def test_the_check_notices_what_is_left_out(spark: Any, functions: ModuleType) -> None:
    """A new function of Spark, a reason for one with a rule: each is reported, by name."""
    found = disagreements({*listed(spark), "brand_new"}, functions)
    assert found["neither rule nor reason"] == {"brand_new"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(functions.REASONS, "Nobody knows.", "upper")
        assert disagreements(listed(spark), functions)["a rule and a reason"] == {"upper"}


def test_every_other_name_is_read_as_a_whole(functions: ModuleType, table: tamis.Table) -> None:
    """Nothing in these examples is left to Spark, and each skips some parts."""
    schema = table.snapshot.head.schema
    assert schema is not None
    for name, text in functions.OTHER_NAMES.items():
        tree = expr.parse_predicate(text, schema)
        unread = [node.text for node in tree.walk() if isinstance(node, Opaque)]
        assert not unread, f"{name}: {unread}"
        assert name in text.lower(), text
        assert table.explain(text).parts.kept < 12, f"{text} skips nothing"


def test_no_function_with_a_reason_is_read(functions: ModuleType, table: tamis.Table) -> None:
    """A call with a column of any type is left to Spark."""
    schema = table.snapshot.head.schema
    assert schema is not None
    for name in functions.reasons():
        if name.isidentifier():
            for column in ("i", "s", "x", "ts", "tags"):
                tree = expr.parse_predicate(f"{name}({column}) IS NULL", schema)
                assert any(isinstance(node, Opaque) for node in tree.walk()), f"{name}({column}) is read"
