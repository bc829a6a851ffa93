"""The optional library vortex-data, and the types it lacks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tamis.errors import InvalidInput


def import_vortex() -> Any:
    """Return the module. Raises ``InvalidInput`` (``MISSING_PACKAGE``) if it is not installed."""
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


def vortex_storage_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type in which an atomic type is stored: Vortex has no intervals."""
    return pa.int64() if pa.types.is_duration(data_type) else data_type


def check_vortex(schema: pa.Schema) -> None:
    """Raise ``InvalidInput`` if a table of this schema cannot be written or read here."""
    del schema  # every type is supported
    import_vortex()
