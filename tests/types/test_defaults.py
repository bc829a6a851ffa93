"""The JSON form of initial defaults."""

from __future__ import annotations

import pyarrow as pa
from tests.schema.making import f, new_table


def test_a_default_of_a_variant_is_its_document() -> None:
    table = new_table(f("k"), rows=[{"k": 1}])
    table.alter().add_column("v", "VARIANT", default="""parse_json('{"a": [1, 2]}')""").commit()
    table.append(pa.table({"k": [2]}))
    assert table.scan("v:a[1]::int = 2").count() == 2
    one, other = table.scan().to_arrow()["v"].to_pylist()
    assert one == other
