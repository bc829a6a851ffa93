"""A field of what is no column (an element, a value of a map, a function's struct) is never taken for the column of that name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tamis.core.expr import Opaque, column_paths, parse_predicate
from tamis.core.types.arrow import from_arrow_schema

_POINT = pa.struct([("y", pa.int64())])
_SCHEMA = from_arrow_schema(
    pa.schema(
        [
            ("y", pa.int64()),
            ("m", pa.map_(pa.string(), _POINT)),
            ("st", pa.struct([("x", _POINT), ("y", pa.int64()), ("l", pa.list_(_POINT))])),
            ("a", pa.list_(_POINT)),
            ("js", pa.string()),
        ]
    )
).assign_ids(0)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "element_at(m, 'a').y",
            "m['a'].y",
            "st['x'].y",
            "get(a, 0).y",
            "a[0].y",
            "st.l[0].y",
            "from_json(js, 'y DATE').y",
        ),
        *("named_struct('y', 1).y", "m['a'].y.z", "(get(a, 0)).y"),
    ],
)
def test_a_field_of_a_value_is_no_column(text: str) -> None:
    read = parse_predicate(f"{text} = 1", _SCHEMA)
    assert _SCHEMA.find("y")[0].id not in {ids[-1] for ids in column_paths(read)}


@pytest.mark.parametrize("text", ["from_json(js, 'y DATE').y", "m['a'].y.z"])
def test_what_cannot_be_read_is_unknown(text: str) -> None:
    assert any(isinstance(node, Opaque) for node in parse_predicate(f"{text} = 1", _SCHEMA).walk())


@pytest.mark.parametrize("text", ["y", "st.y", "st.x.y", "(st).y", "(st.x).y", "exists(a, e -> e.y = 1)"])
def test_a_field_of_a_column_is_known(text: str) -> None:
    whole = text if "->" in text else f"{text} = 1"
    assert not any(isinstance(node, Opaque) for node in parse_predicate(whole, _SCHEMA).walk())
