"""Tells columns of JSON objects from other texts, by a sample."""

from __future__ import annotations

import contextlib
import re

import pyarrow as pa

from tamis.core.expr.json_codec.jackson_reader import Malformed, plain_document
from tamis.core.stats.json_paths import text_paths
from tamis.sizes import SIZES

SAMPLE = SIZES.document_sample
_OPENED = re.compile(rb"[ \t\r\n\f]*\{")


def looks_like_objects(texts: pa.Array) -> bool:
    """Return whether a sample of the strings parses as objects, so that paths are collected."""
    sample = _sample(texts)
    if not len(sample):
        return False
    data = sample.view(pa.binary()).to_pylist()
    if 10 * sum(_OPENED.match(document) is not None for document in data) < 9 * len(data):
        return False
    # What cannot be parsed together is parsed one by one.
    with contextlib.suppress(text_paths.UnusablePaths, Malformed, ValueError, RecursionError):
        documents = text_paths.parsed_documents(sample.to_pylist())
        return 10 * sum(isinstance(document, dict) for document in documents) >= 9 * len(sample)
    objects = 0
    for document in data:
        with contextlib.suppress(Malformed, UnicodeDecodeError):
            objects += isinstance(plain_document(document.decode()), dict)
    return 10 * objects >= 9 * len(sample)


def may_look_like_objects(texts: pa.Array) -> bool:
    """Return whether ``looks_like_objects`` can be true, judging by the beginning of a few texts."""
    sample = _sample(texts)
    first = sample.slice(0, len(sample) // 10 + 1).view(pa.binary()).to_pylist()
    return any(_OPENED.match(document) is not None for document in first)


def _sample(texts: pa.Array) -> pa.Array:
    present = texts.drop_null() if texts.null_count else texts
    step = max(1, len(present) // SAMPLE)
    return present.slice(0, SAMPLE) if step == 1 else present.take(pa.array(range(0, len(present), step)[:SAMPLE]))
