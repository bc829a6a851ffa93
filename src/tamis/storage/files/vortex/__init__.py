"""Vortex, through vortex-data, which is imported when a part of this format is written or opened."""

from tamis.storage.files.vortex.vortex_library import check_vortex
from tamis.storage.files.vortex.vortex_part import VortexPart, open_vortex
from tamis.storage.files.vortex.vortex_writer import VortexPartWriter

__all__ = ["VortexPart", "VortexPartWriter", "check_vortex", "open_vortex"]
