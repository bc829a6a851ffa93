"""Writing of parts: conform data to the table's schema, sort it, write files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from tamis.engine.part_writer.conformed_batches import conform_batches as conform_batches
    from tamis.engine.part_writer.external_sort import sorted_batches as sorted_batches
    from tamis.engine.part_writer.write_part import WriteSpec as WriteSpec
    from tamis.engine.part_writer.write_part import write_parts as write_parts
else:
    __getattr__ = lazy_attributes(
        __name__,
        {
            "WriteSpec": "tamis.engine.part_writer.write_part",
            "conform_batches": "tamis.engine.part_writer.conformed_batches",
            "sorted_batches": "tamis.engine.part_writer.external_sort",
            "write_parts": "tamis.engine.part_writer.write_part",
        },
    )
