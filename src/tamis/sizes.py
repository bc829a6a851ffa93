"""The sizes at which code paths begin and end: rows of a batch and a block, entries of a set, bytes kept inline.

None of them changes an answer, so none is an option of a scan. Tests turn them down to drive small tables through every path:
set the environment variable ``TAMIS_SIZES`` before ``tamis`` is imported, for example ``TAMIS_SIZES="block_rows=16,set_values=3"``.
Spark's local mode hands the variable on to its workers; on a cluster, set ``spark.executorEnv.TAMIS_SIZES`` as well.

Modules bind a size to a constant when they are imported, so reading one costs nothing, and changing one later has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from tamis.errors import InvalidInput
from tamis.world import world

VARIABLE = "TAMIS_SIZES"


@dataclass(frozen=True, slots=True)
class InternalSizes:
    """One value per size, each a whole number with its unit in the name or beside it."""

    # Data files and their writer.
    block_rows: int = 8_192
    """Fewest rows of a block; blocks of narrow rows have up to ``largest_block_rows``, of wide ones ``wide_block_rows``."""
    largest_block_rows: int = 65_536
    wide_block_rows: int = 16_384
    page_rows: int = 2_048
    piece_rows: int = 65_536
    """Rows that are decoded together."""
    sorted_batch_rows: int = 65_536
    """Rows of a batch that leaves the sorter."""
    sort_step_rows: int = 8_192

    # Statistics.
    set_values: int = 32
    """Values of a column up to which a part keeps their set."""
    set_sample_rows: int = 256
    """Rows of a block that tell early that a column has too many values."""
    document_paths: int = 500
    """JSON paths of a part up to which statistics are kept."""
    document_sample: int = 64
    document_batch: int = 1_024
    variant_values: int = 1_024
    """Variants that are walked together."""
    variant_layout: int = 64
    """Objects of one layout from which their fields are read together."""

    # Metadata.
    table_inline_bytes: int = 32 * 2**10
    """Compressed bytes of a table up to which it stands inside its commit."""
    rollup_inline_bytes: int = 64 * 2**10
    manifest_group_rows: int = 16_384
    index_inline_covers: int = 64
    """Base parts up to which an index segment's commit lists their ids itself."""
    plan_slice_parts: int = 1_024
    """Parts of a plan that become Python objects together."""

    # Indexes.
    index_part_bytes: int = 16 * 2**20
    index_block_rows: int = 16_384
    index_page_rows: int = 1_024
    index_whole_rows: int = 8_192
    """Entries of an index part that are read without judging its pages."""
    index_cheap_bytes: int = 512 * 2**10
    """What a look-up may read whatever it saves."""
    index_few_rows: int = 32_768
    """Entries that a look-up reads without an estimate of their cost."""
    index_sample_parts: int = 32
    index_few_hits: int = 1_024
    index_driver_hits: int = 1_000_000
    """Hits from which tasks look up their own parts."""
    index_merge_segments: int = 16
    """Small index segments that become one."""
    index_driver_rows: int = 200_000
    """Rows that Spark's driver indexes without a job."""

    # Reading and scanning.
    waiting_rows: int = 8_192
    """Surviving rows whose other columns may be fetched later, together."""
    few_candidates: int = 16
    topk_held_rows: int = 65_536
    group_held_rows: int = 65_536
    thread_bytes: int = 8 * 2**20
    """Bytes of a part from which a second thread pays."""
    list_characters: int = 2_000
    """Characters of a filter from which long lists are parsed apart."""
    abstract_cases: int = 128
    """Cases of a piece that the abstract interpreter tells apart."""
    abstract_width: int = 32
    """Values between two bounds that it looks at one by one."""

    # Changing rows.
    merge_group_rows: int = 262_144
    merge_keys: int = 1_000_000
    """Distinct keys of a merge's source up to which the target is asked for exactly these."""
    spark_merge_keys: int = 100_000
    local_delete_parts: int = 4
    """Parts up to which a DELETE looks for rows without a Spark job."""
    compact_run_parts: int = 16

    # Spark.
    smallest_batch_rows: int = 4_096
    """Batches of fewer rows are joined before they cross to the JVM."""
    largest_batch_rows: int = 65_536
    pushed_list_values: int = 1_000
    """Values of an IN list up to which Spark's Parquet reader is told of it."""
    look_bytes: int = 64 * 2**20
    """What the driver reads of the order's columns before it sends tasks of ORDER BY … LIMIT."""
    look_rows: int = 10_000
    join_keys: int = 1_000_000
    join_key_task_bytes: int = 2**18
    join_part_bytes: int = 2**22
    """Bytes of a single part from which it pays to wait for a join's keys."""
    join_share_percent: int = 2
    """Share of a column's values up to which join keys are few."""


def parse_sizes(text: str) -> InternalSizes:
    """The sizes of ``name=value,…``, the others at their defaults. Raises ``InvalidInput`` (``BAD_SIZES``)."""
    known = {f.name for f in fields(InternalSizes)}
    found: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = entry.partition("=")
        if name.strip() not in known or not value.strip().isdecimal() or int(value) < 1:
            raise InvalidInput(
                f"{VARIABLE} has no meaning for {entry!r}.",
                code="BAD_SIZES",
                name=name.strip(),
                remedy="Give name=number, separated by commas, each number at least 1; names are: " + ", ".join(sorted(known)) + ".",
            )
        found[name.strip()] = int(value)
    return InternalSizes(**found)


SIZES = parse_sizes(world().environment().get(VARIABLE, ""))
"""The sizes of this process."""
