"""One small protocol per data format: write a part in a pass, read chosen blocks, columns and rows of it."""

from tamis.files.formats import create_part, open_part
from tamis.files.protocol import IoCounters, PartFile, PartRef, PartWriter, Piece, WriteOptions, WrittenFile

__all__ = ["IoCounters", "PartFile", "PartRef", "PartWriter", "Piece", "WriteOptions", "WrittenFile", "create_part", "open_part"]
