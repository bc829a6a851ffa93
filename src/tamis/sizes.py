"""Thresholds at which code paths start and end: rows of a batch or block, entries of a set, inline bytes.

None of them changes a result, so none is a scan option. Tests lower them to drive small tables through every
path: set the environment variable ``TAMIS_SIZES`` before ``tamis`` is imported, for example
``TAMIS_SIZES="block_rows=16,set_values=3"``. Spark's local mode passes the variable on to its workers; on a
cluster, set ``spark.executorEnv.TAMIS_SIZES`` as well.

Modules bind a size to a constant on import, so that reading one is free, and changing one later has no
effect.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from tamis.errors import InvalidInput
from tamis.world import world

VARIABLE = "TAMIS_SIZES"

MOST_BLOCK_ROWS = 2**20
"""Rows of a block beyond which the Parquet library would make two row groups of it."""


@dataclass(frozen=True, slots=True)
class InternalSizes:
    """One attribute per size, a whole number with its unit in the name or docstring."""

    # Data files and their writer.
    block_rows: int = 8_192
    """Minimum rows of a block; narrow rows have up to ``largest_block_rows``, wide ones ``wide_block_rows``.
    """
    largest_block_rows: int = 65_536
    wide_block_rows: int = 16_384
    page_rows: int = 2_048
    dictionary_bytes: int = 2**20
    """Bytes of a chunk's dictionary from which the Parquet library goes on without one."""
    stripe_rows: int = 3_277
    """Maximum rows of an ORC stripe if rows are wide: a fifth of ``wide_block_rows``."""
    stripe_row_bytes: int = 256
    """Bytes of a row, as Arrow data, from which a block has several ORC stripes."""
    page_index_percent: int = 12
    """Maximum size of an adopted file's page indexes, in percent of the bytes that they may save."""
    piece_rows: int = 65_536
    """Rows that are decoded together."""
    decoded_values: int = 250_000
    """Values that are decoded at once where few rows are wanted. One column may have more."""
    sorted_batch_rows: int = 65_536
    """Rows of the sorter's output batches."""
    sort_step_bytes: int = 2**20
    """Bytes of a batch of a sorted run: merging runs holds a batch of each."""

    # Statistics.
    collecting_thread_bytes: int = 256 * 2**10
    """Arrow bytes of a block from which its statistics are collected in a thread of their own."""
    set_values: int = 32
    """Maximum number of distinct values for which a part stores a column's value set."""
    set_sample_rows: int = 256
    """Rows of a block sampled to detect early that a column has too many values."""
    map_keys: int = 32
    """Maximum number of keys of a map column that have statistics of their own in a part."""
    map_sample: int = 4_096
    """Entries of a block sampled to detect early that most keys occur once."""
    document_paths: int = 500
    """Maximum number of JSON paths of a column with statistics in a part, besides kept ones."""
    document_sample: int = 64
    document_batch: int = 1_024
    template_documents: int = 512
    """Documents of a batch from which those of one shape are read together."""
    variant_values: int = 1_024
    """Variants that are traversed together."""
    variant_layout: int = 64
    """Number of objects with the same layout from which their fields are read together."""

    # Metadata.
    table_inline_bytes: int = 32 * 2**10
    """Maximum compressed size of a table stored inside its commit."""
    rollup_inline_bytes: int = 64 * 2**10
    manifest_group_rows: int = 16_384
    index_inline_covers: int = 64
    """Maximum number of base part ids stored inline in an index segment's commit."""
    plan_slice_parts: int = 1_024
    """Parts of a plan that are converted to Python objects together."""

    # Indexes.
    index_part_bytes: int = 16 * 2**20
    index_block_rows: int = 16_384
    index_page_rows: int = 1_024
    index_whole_rows: int = 8_192
    """Maximum number of entries of an index part that is read without judging its pages."""
    index_cheap_bytes: int = 512 * 2**10
    """Bytes that a lookup may read regardless of its savings."""
    index_few_rows: int = 32_768
    """Entries that a lookup reads without a cost estimate."""
    index_sample_parts: int = 32
    index_few_hits: int = 1_024
    index_driver_hits: int = 1_000_000
    """Number of hits from which tasks look up their own parts."""
    index_held_bytes: int = 128 * 2**20
    """Bytes of entries that a process holds for other parts: larger results give positions only."""
    index_merge_segments: int = 16
    """Number of small index segments that are merged."""
    index_driver_rows: int = 200_000
    """Rows that Spark's driver indexes without a job."""

    # Reading and scanning.
    waiting_rows: int = 8_192
    """Surviving rows that may wait so that their other columns are fetched together."""
    few_candidates: int = 16
    topk_held_rows: int = 65_536
    topk_held_bytes: int = 64 * 2**20
    """Bytes of keys that are collected before they are cut to the best rows, unless these have more."""
    group_held_rows: int = 65_536
    group_held_bytes: int = 64 * 2**20
    """Bytes of groups that are collected before they are folded, unless a batch has more."""
    ahead_bytes: int = 64 * 2**20
    """Bytes of rows that the threads of an embedded scan may have read before they are asked for."""
    window_bytes: int = 32 * 2**20
    """Size in files of the windows into which an embedded scan splits large parts."""
    thread_bytes: int = 8 * 2**20
    """Size of a part from which a second thread pays."""
    list_characters: int = 2_000
    """Characters of a filter from which long lists are parsed separately."""
    key_values: int = 1_000_000
    """Maximum number of distinct keys of a join or merge by which the other side is filtered."""
    fetched_key_values: int = 100_000
    """Maximum number of distinct keys that a MERGE in Spark fetches to the driver; tasks get them too."""
    abstract_cases: int = 128
    """Maximum number of cases that the abstract interpreter distinguishes in a piece."""
    abstract_width: int = 32
    """Maximum number of values between two bounds that it enumerates."""

    # Changing rows.
    merge_group_rows: int = 262_144
    merge_group_bytes: int = 128 * 2**20
    """Maximum bytes of a group of rows that a merge joins at once. A single row may have more."""
    feed_batch_rows: int = 65_536
    feed_batch_bytes: int = 32 * 2**20
    """Maximum bytes of a batch of images in a change feed. A single row may have more."""
    local_delete_parts: int = 4
    """Maximum number of parts for which a DELETE finds rows without a Spark job."""
    compact_run_parts: int = 16

    # Planning.
    few_parts: int = 128
    """Parts of a table up to which a plan decides about parts alone, and not about segments first."""

    # Streams.
    stream_run_versions: int = 256
    """Number of versions of which a stream looks at one snapshot."""

    # Spark.
    smallest_batch_rows: int = 4_096
    """Smaller batches are combined before they are passed to the JVM."""
    joined_batch_bytes: int = 16 * 2**20
    """Bytes that combined batches have at most."""
    largest_batch_rows: int = 65_536
    narrow_batch_rows: int = 2_048
    """Rows of a batch that Spark hands over for a write without measuring it."""
    narrow_row_bytes: int = 32 * 2**10
    """Bytes of a row up to which such a batch may have it; times ``narrow_batch_rows``, Spark's own 64 MiB."""
    pushed_list_values: int = 1_000
    """Maximum number of IN list values pushed down to Spark's Parquet reader."""
    look_bytes: int = 64 * 2**20
    """Bytes of sort columns that the driver reads before it starts tasks for ORDER BY … LIMIT."""
    look_rows: int = 10_000
    join_key_task_bytes: int = 2**18
    """Maximum bytes of a join's keys that are sent with every task."""
    join_part_bytes: int = 2**22
    """Size of a single part from which waiting for a join's keys pays."""
    join_share_percent: int = 2
    """Maximum share of a column's values for join keys to count as few, in percent."""


def parse_sizes(text: str) -> InternalSizes:
    """Parse ``name=value,…``; other sizes keep their defaults. Raises ``InvalidInput`` (``BAD_SIZES``)."""
    known = {f.name for f in fields(InternalSizes)}
    found: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = entry.partition("=")
        if name.strip() not in known or not value.strip().isdecimal() or int(value) < 1:
            raise InvalidInput(
                f"{VARIABLE} has no meaning for {entry!r}.",
                code="BAD_SIZES",
                name=name.strip(),
                remedy="Give name=number, separated by commas, each number at least 1; names are: "
                + ", ".join(sorted(known))
                + ".",
            )
        if name.strip().endswith("block_rows") and int(value) > MOST_BLOCK_ROWS:
            raise InvalidInput(
                f"{VARIABLE} gives a block more rows than a Parquet row group can have: {entry!r}.",
                code="BAD_SIZES",
                name=name.strip(),
                remedy=f"Give {name.strip()} at most {MOST_BLOCK_ROWS}.",
            )
        found[name.strip()] = int(value)
    return InternalSizes(**found)


SIZES = parse_sizes(world().environment().get(VARIABLE, ""))
"""The sizes of this process."""
