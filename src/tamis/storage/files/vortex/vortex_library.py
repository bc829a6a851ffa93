"""The optional library, and what it cannot hold."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tamis.errors import InvalidInput


def vortex() -> Any:
    """The module. Raises ``InvalidInput`` (``MISSING_PACKAGE``) where it is not installed."""
    try:
        import vortex as module
    except ImportError as error:
        raise InvalidInput(
            "The format vortex needs the package vortex-data, which is not installed.",
            code="MISSING_PACKAGE",
            name="vortex",
            remedy="pip install 'tamis[vortex]', on executors too; or use the format parquet.",
        ) from error
    return module


def keep(data_type: pa.DataType) -> pa.DataType:
    """What an atomic type is kept as: Vortex has no intervals."""
    return pa.int64() if pa.types.is_duration(data_type) else data_type


def check_vortex(schema: pa.Schema) -> None:
    """Raises ``InvalidInput`` where a table of this schema could not be written or read here."""
    del schema  # every type of the table has a place
    vortex()
