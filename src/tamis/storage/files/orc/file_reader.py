"""Reads the stripes of a part of earlier releases, whose seal has no layout, through the file's own footers.

Each stripe is a block, and costs a call of the library.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyarrow import orc

from tamis.storage.files.corrupt_parts import corrupt_part
from tamis.storage.files.file_source import Stream
from tamis.storage.files.sealed_reader import Sealed


class FileReader:
    """The stripes of such a part (see ``StripeReader``)."""

    def __init__(self, source: Sealed) -> None:
        self._stream = Stream(source.ref, source.seal.size, source.read)
        with self._stream.decoding("its footer"):
            self._file = orc.ORCFile(pa.PythonFile(self._stream, mode="r"))
        if self._file.nrows != source.ref.rows or self._file.nstripes != len(source.seal.blocks):
            raise corrupt_part(
                source.ref, f"has {self._file.nrows} rows in {self._file.nstripes} stripes, other than its seal says"
            )
        self.names: Sequence[str] = self._file.schema.names
        self.rows = np.array(source.seal.blocks, dtype=np.int64)

    def read(self, places: Sequence[int], stripes: Sequence[int]) -> list[pa.RecordBatch]:
        with self._stream.decoding(f"stripes {stripes}"):
            return [self._file.read_stripe(stripe, columns=list(places)) for stripe in stripes]
