"""Options of the Python data source: the path, the version, the columns, and those of the object store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tamis.engine.scan.query_instants import instant_micros
from tamis.errors import InvalidInput, SchemaFenced
from tamis.storage.commit_log import Snapshot, load
from tamis.storage.commit_log.version_points import check_single_point, parse_version
from tamis.storage.object_store import Store, open_store

_OWN = frozenset(
    {"path", "columns", "filter", "versionasof", "timestampasof", "readversion", "checkpointlocation", "queryname"}
)


@dataclass(frozen=True, slots=True)
class ReadWriteOptions:
    """The options of one read or write. All others than those named here are for the object store."""

    path: str
    columns: str | None = None
    row_filter: str | None = None
    version: str | None = None
    timestamp: str | None = None
    checkpoint: str | None = None
    read_version: str | None = None
    """The version of the table from which the rows of a write were computed."""
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(given: Mapping[str, str]) -> ReadWriteOptions:
        """Read the options; names ignore case. Raises ``InvalidInput`` (``BAD_OPTION``)."""
        lower = {key.lower(): value for key, value in given.items()}
        if "path" not in lower:
            raise InvalidInput(
                "No path is given.", code="BAD_OPTION", name="path", remedy="Name the table's folder: load(path)."
            )
        check_single_point(lower.get("versionasof"), lower.get("timestampasof"))
        return ReadWriteOptions(
            lower["path"],
            lower.get("columns"),
            lower.get("filter"),
            lower.get("versionasof"),
            lower.get("timestampasof"),
            lower.get("checkpointlocation"),
            lower.get("readversion"),
            {key: value for key, value in given.items() if key.lower() not in _OWN},
        )

    def store(self) -> Store:
        """Open the table's store. Raises ``InvalidInput`` naming an option that the store does not know."""
        return open_store(self.path, dict(self.storage))

    def refuse_read_version(self, what: str) -> None:
        """Raise ``InvalidInput`` (``BAD_OPTION``) if ``readVersion`` is given, for ``what``, which does not take it."""
        if self.read_version is not None:
            raise InvalidInput(
                f"{what} does not take the option readVersion.",
                code="BAD_OPTION",
                name="readVersion",
                remedy="It is for df.write: a read takes versionAsOf, and a stream appends.",
            )

    def snapshot(self) -> Snapshot:
        """Load the version to read that the options name, or the latest. Raises ``NotFound``."""
        self.refuse_read_version("A read")
        if self.timestamp is not None:
            return load(self.store(), timestamp_micros=instant_micros(self.timestamp))
        return load(self.store(), None if self.version is None else parse_version(self.version))


def replaced_table(url: str) -> SchemaFenced:
    """Return the error for a table that is not the one that was read before."""
    return SchemaFenced(
        f"Another table lies at {url} now.",
        code="TABLE_REPLACED",
        name=url,
        remedy="Make the DataFrame again, or start the stream again, to go on with the table that is there now.",
    )
