"""Constants by which a scan chooses the cheaper of two ways that return the same rows.

None of them changes a result. ``tamis.sizes`` holds sizes at which code paths begin; here are prices and shares
that were measured against each other. They combine in this order:

1. The funnel leaves parts. ``core.pruning.selectivity`` guesses the share of their rows that the filter keeps.
2. ``engine.secondary_index.lookup_cost`` compares the bytes of a lookup, each ``index_byte`` times as dear, with the
   bytes of leaders and followers that its candidates save.
3. In Spark, ``spark.scan.native_reader`` gives the parts to Spark's own Parquet reader if the filter keeps
   ``native_kept_share`` of the rows, or if lazy reading saves less than ``native_saved_share`` of the bytes.
4. Join keys are asked for if an average part has at most ``join_spread_share`` of the column's range, or if reading
   late would save much; the latter only if a join in the scan's own stage gives it keys. They narrow a scan if they
   are few, or cover at most ``join_covered_share`` of the range.
5. In a part, ``engine.part_reader.lazy_choice`` reads a chunk lazily if leaders are less than ``lazy_leader_share`` of
   its bytes, fewer than ``lazy_kept_share`` of its rows are likely to survive, and the survivors of the chunk before
   were not so scattered that ``lazy_decoded_share`` of its rows had to be decoded.
6. In a chunk, the next legs of an AND or OR see only undecided rows if ``gather_nanos`` and its neighbours say that
   this costs less than evaluating them on all rows (``core.expr.short_circuit``).
7. In a file, rows are read by pages if they lie on less than ``excerpt_page_share`` of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CostModel:
    """One attribute for each constant, with its unit and the benchmark that shows it (``bench/results``)."""

    differing_share: float = 0.9
    """Share of rows: assumed to differ from a value, to be outside a list, or not to match a pattern. A convention."""

    index_byte: int = 4
    """Bytes of a column read whole that cost as much as one index byte read by page. ``index``, design note 0013."""

    native_kept_share: float = 0.25
    """Share of rows kept from which Spark's reader is faster than a Python worker. ``lazy_spark``."""
    native_saved_share: float = 0.5
    """Share of bytes that lazy reading must save in a Python worker. Spark's reader skips by hints. ``lazy_spark``."""

    join_covered_share: float = 0.9
    """Share of a column's range that many join keys may cover and still prune a part. ``joins``."""
    join_spread_share: float = 0.75
    """Share of a column's range in an average part from which its join keys skip no part. ``tpcds``."""

    lazy_leader_share: float = 0.8
    """Share of a chunk's bytes in leaders from which a second read does not pay. ``lazy_grid``."""
    lazy_kept_share: float = 0.25
    """Share of surviving rows from which a chunk is read whole. ``lazy_grid``."""
    lazy_decoded_share: float = 0.75
    """Share of a chunk's rows decoded for its survivors from which the next chunk is read whole. ``lazy_grid``."""
    lazy_sparse_share: float = 1 / 256
    """Share of surviving rows below which more rows are filtered before followers are fetched. ``lazy``."""

    gather_nanos: int = 100_000
    """Nanoseconds of gathering undecided rows for the next legs of an AND or OR, whatever their number. ``filters``."""
    gather_number_nanos: float = 1.0
    """Nanoseconds of gathering a number. ``filters``."""
    gather_byte_nanos: float = 0.15
    """Nanoseconds of gathering a byte of a text or document. ``filters``."""
    call_nanos: int = 20_000
    """Nanoseconds of evaluating a leg of an AND or OR, whatever its rows. ``filters``."""
    compare_nanos: float = 1.0
    """Nanoseconds that a function of numbers is guessed to take per row, before it was observed. ``filters``."""
    text_nanos: float = 20.0
    """The same for a function of texts. ``filters``."""
    document_nanos: float = 2_000.0
    """The same for a function that parses documents. ``filters``."""

    taken_share: float = 0.75
    """Share of surviving rows below which they are taken by index; a mask is faster for long runs. ``files``."""

    few_rows_share: float = 0.25
    """Share of a chunk's rows up to which its columns are decoded a few at a time. Not measured: a guess."""
    excerpt_page_share: float = 0.5
    """Share of a chunk's pages from which the chunk is read whole, because an excerpt is a copy. ``lazy``."""
    task_remainder_share: float = 0.1
    """Share of a part that is too little for a Spark task of its own. ``scan``."""


COSTS = CostModel()
"""The constants of this process."""
