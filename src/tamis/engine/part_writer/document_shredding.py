"""Shredding: leaves of a part's documents, computed block by block during the write.

Invariant: a reader finds in a leaf what it would find in the document. If that is in doubt for any value (a
damaged document, or number text that depends on Spark's Java version), the part does not declare the leaf.
"""

from __future__ import annotations

import pyarrow as pa

from tamis.core.expr import Call, Column, Literal, evaluate
from tamis.core.expr.java_doubles import spark_decides
from tamis.core.expr.json_codec import variant_columns
from tamis.core.expr.json_codec.json_path import steps_of
from tamis.core.expr.json_codec.variant_extraction import separate_documents
from tamis.core.types import STRING, VARIANT, Schema
from tamis.core.types.arrow import to_arrow_schema
from tamis.core.types.blank_values import null_array
from tamis.storage.files.shredded_leaves import LEAVES, Leaf, encode_leaves, leaves_for, with_leaves


class Shredder:
    """Computes the leaves of one part for the column ids and paths in ``places``."""

    def __init__(self, schema: Schema, places: tuple[tuple[int, str], ...]) -> None:
        self._leaves = leaves_for(schema, places)
        self._at = {f.id: at for at, f in enumerate(schema)}
        self._doubtful: set[Leaf] = set()
        self._text = {f.id: Column(f.type, (f.id,), f.name) for f in schema}
        self.schema = to_arrow_schema(with_leaves(schema, self._leaves))
        """The written schema: the table's columns followed by the leaves."""

    @property
    def notes(self) -> dict[str, str]:
        """The file note that declares the part's leaves."""
        sure = [leaf for leaf in self._leaves if leaf not in self._doubtful]
        return {LEAVES: encode_leaves(sure)} if sure else {}

    def add(self, block: pa.RecordBatch) -> pa.RecordBatch:
        """Append the leaves to the block."""
        if not self._leaves:
            return block
        return pa.RecordBatch.from_arrays(
            [*block.columns, *(self._values(leaf, block) for leaf in self._leaves)], schema=self.schema
        )

    def _values(self, leaf: Leaf, block: pa.RecordBatch) -> pa.Array:
        documents = block.column(self._at[leaf.column])
        steps = steps_of(leaf.path)
        if leaf in self._doubtful or steps is None:
            return null_array(self.schema.field(leaf.field.name).type, len(block))
        if leaf.field.type == VARIANT:
            values, sound = separate_documents(
                documents, variant_columns.at_path(variant_columns.nodes(documents), steps)
            )
        else:
            asked = Call(STRING, "get_json_object", (self._text[leaf.column], Literal(STRING, leaf.path)))
            with spark_decides():
                found = evaluate(asked, {leaf.column: documents}, len(block))
            values, sound = found.values, found.failed is None
            values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if not sound:
            self._doubtful.add(leaf)
        return values
