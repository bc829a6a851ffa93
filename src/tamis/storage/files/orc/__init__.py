"""The ORC format, through pyarrow."""

from tamis.storage.files.orc.orc_part import OrcPart, open_orc
from tamis.storage.files.orc.orc_writer import OrcPartWriter

__all__ = ["OrcPart", "OrcPartWriter", "open_orc"]
