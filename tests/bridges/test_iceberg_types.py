"""Types of Iceberg become ours, and one that does not fit is refused by name."""

from __future__ import annotations

from datetime import time
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.types import FixedType, NestedField, UUIDType

import tamis
from tamis.bridges.sources.iceberg_schema import iceberg_schema
from tamis.bridges.sources.iceberg_source import read_iceberg
from tamis.core.types.defaults import initial_scalar
from tests.bridges import iceberg_tables as ice


@pytest.mark.parametrize(("kind", "name"), [(UUIDType(), "uuid"), (FixedType(8), r"fixed\[8\]")])
def test_types_that_do_not_fit_are_refused_by_name(tmp_path: Path, kind: Any, name: str) -> None:
    schema = IcebergSchema(NestedField(1, "x", kind, required=False))
    table = ice.catalog(tmp_path).create_table("n.t", schema)
    with pytest.raises(tamis.errors.InvalidInput, match=f"Column 'x' of the Iceberg table is {name}"):
        read_iceberg(str(ice.metadata_of(table)))


def test_types_of_the_third_format() -> None:
    def one(kind: Any, **more: Any) -> Any:
        field: dict[str, Any] = {"id": 1, "name": "x", "required": False, "type": kind, **more}
        return iceberg_schema({"fields": [field]}, "here")

    assert str(one("variant").fields[0].type) == "variant"
    assert str(one("unknown").fields[0].type) == "void"
    assert one("date", **{"initial-default": "2020-01-02"}).fields[0].initial_default == "2020-01-02"
    assert one("binary", **{"initial-default": "ff00"}).fields[0].initial_default == "/wA="
    made = initial_scalar(one("time", **{"initial-default": "22:31:08.123456"}).fields[0])
    assert made.as_py() == time(22, 31, 8, 123456)
    inner = {"id": 2, "name": "y", "required": False, "type": "int", "initial-default": 3}
    struct = one({"type": "struct", "fields": [inner]}, **{"initial-default": {}}).fields[0]
    assert initial_scalar(struct).as_py() == {"y": 3}
    listed: dict[str, Any] = {"type": "list", "element-id": 2, "element": "int", "element-required": True}
    assert one(listed).by_id[2].nullable is False
    for kind in ("timestamp_ns", "timestamptz_ns", "geometry(srid:1)", "geography"):
        with pytest.raises(tamis.errors.InvalidInput, match="UNSUPPORTED_TYPE"):
            one(kind)
    with pytest.raises(tamis.errors.InvalidInput, match=r"'x\.element'"):
        one({**listed, "element": "uuid"})
