"""ORC, through pyarrow: a stripe per block."""

from tamis.files.orc.part import OrcPart, open_orc
from tamis.files.orc.writer import OrcPartWriter, check_orc

__all__ = ["OrcPart", "OrcPartWriter", "check_orc", "open_orc"]
