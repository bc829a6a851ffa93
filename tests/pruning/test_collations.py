"""Text under a collation has no order that we know: nothing is concluded from it, and no row is judged here. Under UTF8_LCASE ``'a' = 'A'`` holds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tamis.core import expr
from tamis.core.expr import calls
from tamis.core.pruning import decide
from tamis.core.stats import Collector, TableEvidence
from tamis.core.types import BOOLEAN, INTEGER, STRING, Array, Field, Map, Schema, String, Struct
from tamis.core.types.arrow import to_arrow_schema

LCASE = String(collation="UTF8_LCASE")
SCHEMA = Schema(
    (
        Field("s", LCASE, True, 1),
        Field("t", STRING, True, 2),
        Field("st", Struct((Field("x", LCASE, True, 4),)), True, 3),
        Field("a", Array(Field("element", LCASE, True, 6)), True, 5),
        Field("m", Map(Field("key", LCASE, False, 8), Field("value", INTEGER, True, 9)), True, 7),
        Field("mv", Map(Field("key", STRING, False, 11), Field("value", LCASE, True, 12)), True, 10),
        Field("es", Array(Field("element", Struct((Field("x", LCASE, True, 15),)), True, 14)), True, 13),
        Field("b", BOOLEAN, True, 16),
    )
)
ROW: dict[str, Any] = {
    "s": "a",
    "t": "a",
    "st": {"x": "a"},
    "a": ["a"],
    "m": [("a", 1)],
    "mv": [("k", "a")],
    "es": [{"x": "a"}],
    "b": True,
}
FILTERS = """
s = 'A'
s <> 'A'
NOT s = 'A'
s IN ('A','Q')
s NOT IN ('A','Q')
s BETWEEN 'A' AND 'A'
s >= 'a' AND s <= 'A'
s > 'Z'
s <=> 'A'
NOT s <=> 'A'
s = 'A' AND s = 'a'
s = 'A' AND t = 'a'
s = t
s LIKE 'A%'
s ILIKE 'A'
startswith(s,'A')
endswith(s,'A')
contains(s,'A')
NOT contains(s,'A')
st.x = 'A'
st.x IN ('A')
a[0] = 'A'
element_at(a,1) = 'A'
array_contains(a,'A')
NOT array_contains(a,'A')
exists(a, x -> x = 'A')
forall(a, x -> x = 'A')
NOT forall(a, x -> x <> 'A')
m['A'] = 1
m['A'] IS NULL
element_at(m,'A') = 1
try_element_at(m,'A') = 1
mv['k'] = 'A'
es[0].x = 'A'
array_contains(es.x,'A')
exists(es, e -> e.x = 'A')
upper(s) = 'a'
lower(s) = 'A'
concat(s,'x') = 'AX'
coalesce(s,'z') = 'A'
if(b, s, 'z') = 'A'
CASE WHEN b THEN s ELSE t END = 'A'
CASE s WHEN 'A' THEN true ELSE false END
greatest(s,'A') = 'A'
least(s,'B') = 'A'
nullif(s,'A') IS NULL
nullif(s,'A') IS NOT NULL
s COLLATE UTF8_BINARY = 'A'
t COLLATE UTF8_LCASE = 'A'
collate(t,'UTF8_LCASE') = 'A'
collate(t,'UTF8_LCASE') IN ('A')
t = 'A' COLLATE UTF8_LCASE
'A' COLLATE UTF8_LCASE = 'a'
replace(s,'A','b') = 'b'
instr(s,'A') > 0
locate('A',s) > 0
split_part(s,'A',1) = ''
split(s,'A')[0] = ''
trim('A' FROM s) = ''
substring(s,1,1) = 'A'
left(s,1) = 'A'
reverse(s) = 'A'
repeat(s,1) = 'A'
lpad(s,1,'x') = 'A'
s RLIKE 'A'
regexp_replace(s,'a','b') = 'B'
cast(s AS STRING) = 'A'
cast(s AS BINARY) = X'41'
string(s) = 'A'
get_json_object(s,'$.a') = 'A'
length(s) = 1
md5(s) = md5('A')
map_contains_key(m,'A')
nvl2(b, s, t) = 'A'
substring_index(s,'A',1) = ''
position('A' IN s) = 1
s || '' = 'A'
overlay(s PLACING 'A' FROM 1) = 'a'
try_cast(s AS INT) IS NULL
named_struct('q', s).q = 'A'
array(s)[0] = 'A'
array_contains(array(s),'A')
s IN (t, 'A')
""".strip().splitlines()
KNOWN = {
    "s IS NULL": "none",
    "s IS NOT NULL": "all",
    "st.x IS NULL": "none",
    "a IS NULL": "none",
    "size(a) = 2": "none",
    "t = 'A'": "none",
}
"""What is the same under every collation."""


def piece() -> pa.Table:
    return pa.Table.from_pylist([ROW] * 2, schema=to_arrow_schema(SCHEMA))


def decided(text: str) -> str:
    collector = Collector(SCHEMA)
    for batch in piece().to_batches():
        collector.update(batch)
    stats = TableEvidence(collector.finish().append_column("rows", pa.array([2])), SCHEMA)
    found = decide(expr.conjuncts_of(expr.parse_predicate(text, SCHEMA)), stats, strict=True)
    return "none" if found.none[0] else "all" if found.all[0] else "some"


def concluded() -> list[str]:
    """Filters of which something is said, or which are run on rows."""
    out = []
    for text in FILTERS:
        runs = all(expr.is_supported(c) for c in expr.conjuncts_of(expr.parse_predicate(text, SCHEMA)))
        if runs or decided(text) != "some":
            out.append(text)
    return out


def test_nothing_is_concluded() -> None:
    assert concluded() == []


def test_what_every_collation_leaves_alone_is_known() -> None:
    assert {text: decided(text) for text in KNOWN} == KNOWN


def test_a_collation_that_is_overlooked_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: all text is compared by its bytes."""
    monkeypatch.setattr(calls, "_collated", lambda _arg: False)
    assert len(concluded()) > 20
