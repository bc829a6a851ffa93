"""Options of Delta Lake and Iceberg that Tamis refuses by name, each with what does the same here."""

from __future__ import annotations

from typing import NamedTuple


class ForeignOption(NamedTuple):
    """``name`` as its users write it."""

    name: str
    source: str
    remedy: str


_SNAPSHOT = "Versions are numbered from 0: use versionAsOf; table.history() lists them."
_FEED = "Use readChangeFeed with startingVersion and endingVersion."
_SPLIT = "Tasks follow spark.sql.files.maxPartitionBytes."
_PARTS = "The size of parts is the setting tamis.write.part_bytes."
_EXACTLY_ONCE = "Use writeStream, or foreachBatch(table.stream_writer(query='…')): both write an epoch once."
_READER = "The setting tamis.read.lazy chooses the reader."
_SHAPE = "Rows are arranged by CLUSTER BY."
_CHANGES = "Use skipChangeCommits, or read the changes: CALL catalog.system.changes(…)."
_BRANCH = "There are no branches and tags: use versionAsOf."
_CODEC = "The compression of each column is chosen by its values: leave it out."
_STREAM_PACE = "Use maxFilesPerTrigger or maxBytesPerTrigger."
_LOSS = "A stream whose versions are gone fails: start it anew, with a checkpoint of its own."
_LEAVE = "Leave it out."
_SCHEMA = "A stream whose schema has moved on is started again under the new one."
_CHECKED = "Columns are matched by name and checked by Spark: leave it out."
_SERIALIZABLE = "Every write is serializable: leave it out."
_REPLACED = "Name the rows that give way by a filter: replaceWhere."

_DELTA = {
    "ignoreChanges": _CHANGES,
    "ignoreFileDeletion": _CHANGES,
    "failOnDataLoss": _LOSS,
    "excludeRegex": "Filter the rows.",
    "schemaTrackingLocation": _SCHEMA,
    "schemaLocation": _SCHEMA,
    "withEventTimeOrder": "The first version is read in the order of its commits.",
    "allowSourceColumnDrop": _SCHEMA,
    "allowSourceColumnRename": _SCHEMA,
    "allowSourceColumnTypeChange": _SCHEMA,
    "responseFormat": _LEAVE,
    "partitionOverwriteMode": _REPLACED,
    "replaceOn": _REPLACED,
    "replaceUsing": _REPLACED,
    "dataChange": "Use table.compact(), which keeps the rows.",
    "optimizeWrite": _PARTS,
    "autoCompact": "Run OPTIMIZE from a scheduler.",
    "maxRecordsPerFile": _PARTS,
    "compression": _CODEC,
    "txnAppId": _EXACTLY_ONCE,
    "txnVersion": _EXACTLY_ONCE,
    "userMetadata": "Commits have no text of the user: leave it out.",
    "clusterByAuto": _SHAPE,
    "isolationLevel": _SERIALIZABLE,
}
_ICEBERG = {
    "snapshot-id": _SNAPSHOT,
    "as-of-timestamp": "Use timestampAsOf, with a time such as 2026-01-31T12:00:00.",
    "branch": _BRANCH,
    "tag": _BRANCH,
    "start-snapshot-id": _FEED,
    "end-snapshot-id": _FEED,
    "start-timestamp": "Use readChangeFeed with startingTimestamp and endingTimestamp.",
    "end-timestamp": "Use readChangeFeed with startingTimestamp and endingTimestamp.",
    "split-size": _SPLIT,
    "lookback": _SPLIT,
    "file-open-cost": _SPLIT,
    "vectorization-enabled": _READER,
    "batch-size": _READER,
    "locality": _LEAVE,
    "aggregate-push-down-enabled": "The setting tamis.scan.aggregates does this.",
    "stream-from-timestamp": "Use startingTimestamp, with a time such as 2026-01-31T12:00:00.",
    "streaming-max-files-per-micro-batch": "Use maxFilesPerTrigger.",
    "streaming-max-rows-per-micro-batch": _STREAM_PACE,
    "streaming-skip-delete-snapshots": "Use ignoreDeletes.",
    "streaming-skip-overwrite-snapshots": "Use skipChangeCommits.",
    "write-format": "Use tamis.format when the table is made.",
    "target-file-size-bytes": _PARTS,
    "check-nullability": _CHECKED,
    "check-ordering": _CHECKED,
    "fanout-enabled": _SHAPE,
    "use-table-distribution-and-ordering": _SHAPE,
    "distribution-mode": _SHAPE,
    "isolation-level": _SERIALIZABLE,
    "validate-from-snapshot-id": _SERIALIZABLE,
    "overwrite-mode": _REPLACED,
    "compression-codec": _CODEC,
    "compression-level": _CODEC,
    "merge-schema": "Write mergeSchema.",
    "handle-timestamp-without-timezone": "Use the types TIMESTAMP and TIMESTAMP_NTZ.",
}

FOREIGN = {
    name.lower(): ForeignOption(name, source, remedy)
    for source, options in (("Delta Lake", _DELTA), ("Iceberg", _ICEBERG))
    for name, remedy in options.items()
}
"""By name in lower case. A value of ``false`` passes, as it turns on nothing, except of ``ON_BY_DEFAULT``."""
ON_BY_DEFAULT = frozenset({"datachange", "failondataloss", "vectorization-enabled", "aggregate-push-down-enabled"})
"""Options that are on where they come from: ``false`` asks for something."""
