"""How work runs: bring data into the table's schema, sort it, write parts."""

from tamis.exec.conform import conform
from tamis.exec.sort import sorted_batches
from tamis.exec.write import WriteSpec, write_parts

__all__ = ["WriteSpec", "conform", "sorted_batches", "write_parts"]
