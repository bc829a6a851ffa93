"""Specs of dates and times in JSON documents: texts in ISO form, and typed values of VARIANT.

Where all texts of a path are dates or times of one kind, their bounds are times, and no cast of them fails.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.core.expr.json_codec.iso_times import (
    DATE_TEXT,
    DATE_VALUE,
    FARTHEST_OFFSET,
    INSTANT_TEXT,
    INSTANT_VALUE,
    LOCAL_TEXT,
    LOCAL_VALUE,
)
from tamis.core.expr.time_zones import DAY
from tamis.core.expr.tree import Call
from tamis.core.pruning.evidence import DocumentEvidence
from tamis.core.pruning.json_kinds import cast_kind, kind_spec
from tamis.core.pruning.value_spec import Spec, choose_spec
from tamis.core.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType
from tamis.core.types.arrow import to_arrow_type

TIME_TYPES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_FARTHEST = 2**61
"""Microseconds beyond which a bound is unknown, so that arithmetic cannot overflow."""


def text_times(e: DocumentEvidence, call: Call, otherwise: Spec) -> Spec:
    """Return the spec of texts cast to the type of ``call``; ``otherwise`` where they are not all ISO times."""
    out = otherwise
    for form in (DATE_TEXT, LOCAL_TEXT, INSTANT_TEXT):
        mask = np.asarray((e.time_form & form) != 0)
        if not mask.any():
            continue
        if form != INSTANT_TEXT:  # a date is its midnight
            source = _moments(e, TIMESTAMP_NTZ, 0)
        elif call.type == TIMESTAMP:
            source = _moments(e, TIMESTAMP, 0)
        else:  # Spark takes the local time as written and drops the zone
            source = _moments(e, TIMESTAMP_NTZ, FARTHEST_OFFSET)
        out = choose_spec(mask, cast_kind(source, e.string, call.type, call.mode, call.zone), out)
    return out


def typed_times(e: DocumentEvidence, call: Call, otherwise: Spec) -> Spec:
    """Return the spec of typed values cast to the type of ``call``; ``otherwise`` where they are not all times."""
    out = otherwise
    for form, data_type in ((DATE_VALUE, DATE), (INSTANT_VALUE, TIMESTAMP), (LOCAL_VALUE, TIMESTAMP_NTZ)):
        mask = np.asarray((e.time_form & form) != 0)
        if mask.any():
            source = _moments(e, data_type, 0)
            out = choose_spec(mask, cast_kind(source, e.other, call.type, call.mode, call.zone), out)
    return out


def _moments(e: DocumentEvidence, data_type: DataType, margin: int) -> Spec:
    """Return the bounds of times as values of ``data_type``, wider by ``margin`` microseconds on both sides."""
    mask = e.string | e.other
    return kind_spec(data_type, mask, _bound(e.time_lo, data_type, -margin), _bound(e.time_hi, data_type, margin))


def _bound(micros: pa.Array, data_type: DataType, shift: int) -> pa.Array:
    usable = pc.and_(pc.less(micros, _FARTHEST), pc.greater(micros, -_FARTHEST))
    moved = pc.add(pc.if_else(usable, micros, pa.scalar(None, pa.int64())), shift)
    if data_type == DATE:
        days = np.asarray(pc.fill_null(moved, 0)) // DAY
        return pa.array(days.astype(np.int32), mask=np.asarray(moved.is_null())).cast(pa.date32())
    return moved.cast(to_arrow_type(data_type))
