"""ORC, through pyarrow: a stripe per block."""

from tamis.files.orc.part import OrcPart, open_orc
from tamis.files.orc.writer import OrcPartWriter

__all__ = ["OrcPart", "OrcPartWriter", "open_orc"]
