"""A catalog of its own for each test: ``lake`` is (session, catalog name, warehouse folder). It has the empty namespace ``db``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_numbers = itertools.count()


class Lake(NamedTuple):
    spark: Any
    name: str
    folder: Path

    def sql(self, text: str) -> Any:
        """Runs SQL in which ``lake`` stands for this catalog."""
        return self.spark.sql(text.replace("lake.", f"{self.name}."))

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.sql(text).collect()]

    def refused(self, text: str, condition: str) -> str:
        """The text of the error that ``text`` ends with; its condition must be this one."""
        from pyspark.errors import PySparkException

        with pytest.raises(PySparkException) as caught:
            self.sql(text).collect()
        assert caught.value.getCondition() == condition, str(caught.value)
        return str(caught.value)


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[Lake]:
    import tamis

    name = f"lake{next(_numbers)}"
    tamis.attach(spark, name, tmp_path / "warehouse")
    spark.sql(f"CREATE NAMESPACE {name}.db")
    yield Lake(spark, name, tmp_path / "warehouse")
    spark.sql("USE spark_catalog.default")
