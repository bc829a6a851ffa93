"""Writing of parts: conform data to the table's schema, sort it, write files."""

from tamis.engine.part_writer.conformed_batches import conform_batches
from tamis.engine.part_writer.external_sort import sorted_batches
from tamis.engine.part_writer.write_part import WriteSpec, write_parts

__all__ = ["WriteSpec", "conform_batches", "sorted_batches", "write_parts"]
