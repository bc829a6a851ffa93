"""Bounds of texts that a writer may have cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

CUT_AT = 32
"""Delta's writers cut texts to so many UTF-16 units."""


def above_cut_text(highs: pa.Array) -> pa.Array:
    """Return upper bounds that hold even for texts that a Delta writer cut.

    Writers append different characters to a text that they cut, and older ones one (U+FFFD) that does not order above
    all others, or half of a character. So only a prefix is believed of a long text; the bound is what follows all
    texts with it.
    """
    long = pc.greater_equal(pc.binary_length(highs), CUT_AT)  # UTF-8 has as many bytes as UTF-16 has units, or more
    if not pc.any(long).as_py():
        return highs
    # with characters of two units, the one that was cut in half may stand at position 16
    wide = pc.match_substring_regex(highs, "[\\x{10000}-\\x{10FFFF}]")
    short = pc.utf8_slice_codeunits(highs, 0, CUT_AT // 2 - 1)
    stem = pc.if_else(wide, short, pc.utf8_slice_codeunits(highs, 0, CUT_AT - 1))
    return pc.if_else(long, successors(stem), highs)


def successors(texts: pa.Array) -> pa.Array:
    """Return for each text one that is above all texts that begin with it; NULL where that takes more than a step."""
    array = pa.concat_arrays([texts.cast(pa.large_string())])  # the buffers of this text alone
    if array.offset:
        array = pa.array(array.to_pylist(), pa.large_string())
    offsets = np.frombuffer(array.buffers()[1], np.int64)[: len(array) + 1]
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8).copy()
    ends = offsets[1:] - 1
    some = (offsets[1:] > offsets[:-1]) & np.asarray(array.is_valid())
    last = np.zeros(len(array), np.uint8)
    last[some] = data[ends[some]]
    # the next character has the next last byte, except after 7F and BF
    steps = some & (last != 0x7F) & (last != 0xBF)
    data[ends[steps]] += 1
    raised = pa.Array.from_buffers(pa.large_string(), len(array), [None, array.buffers()[1], pa.py_buffer(data)])
    return pc.if_else(pa.array(steps), raised, pa.scalar(None, pa.large_string())).cast(texts.type)
