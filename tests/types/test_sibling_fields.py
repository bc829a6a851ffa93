"""Siblings are found by id, else by name, as by a search of all."""

from hypothesis import given
from hypothesis import strategies as st

from tamis.core.types import LONG, Field
from tamis.core.types.logical import NO_ID
from tamis.core.types.sibling_fields import Siblings

FIELD = st.builds(
    lambda name, column_id: Field(name, LONG, id=column_id), st.sampled_from("abc"), st.sampled_from([NO_ID, 1, 2, 3])
)


@given(st.lists(FIELD, max_size=5), FIELD)
def test_siblings_are_found_as_by_a_search(fields: list[Field], asked: Field) -> None:
    expected = next((f for f in fields if (f.id == asked.id if asked.id != NO_ID else f.name == asked.name)), None)
    assert Siblings(fields).find_field(asked) is expected
