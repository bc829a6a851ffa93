"""Tables of other formats that the oracle adopts, written by their own writers: Spark or Arrow, deltalake, PyIceberg."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.transforms import IdentityTransform

import tamis
from tests.bridges.delta_logs import commit, inline_vector, stored_vectors
from tests.bridges.iceberg_tables import (
    catalog,
    commit_deletes,
    data_paths,
    equality_file,
    local,
    metadata_of,
    position_file,
    vector_files,
)
from tests.oracle import history as h
from tests.oracle.kinds import KINDS, embedded_array

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
Contents = dict[str, tuple[int, bytes]]


def source_folder(table: Path) -> Path:
    """Where the source of the table at ``table`` lies."""
    return table.with_name(f".source-{table.name}")


def adopt(step: h.Adopt, table: Path, spark: Any = None, view: str = "") -> None:
    """Write the source that ``step`` describes, and adopt it as ``table``.

    With ``spark``, folders of Parquet files are written by Spark from ``view``, which holds all rows.
    """
    folder = source_folder(table)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if step.source in {"folder", "hive"} and spark is not None:
        _by_spark(step, folder, spark, view)
        place = folder
    else:
        place = WRITERS[step.source](step, folder)
    types = None
    if step.source == "hive":
        assert step.partition is not None
        types = f"{step.partition} {KINDS[step.columns[step.partition]].sql}"
    made = tamis.adopt(place, table, properties=step.properties, partition_types=types)
    assert isinstance(made, tamis.Table)
    if step.cluster_by:
        made.alter().cluster_by(list(step.cluster_by)).commit()


def contents(table: Path) -> Contents:
    """Every byte and time of the source of ``table``; nothing for a table that is not adopted."""
    folder = source_folder(table)
    found = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes()) for p in found}


def forget(table: Path) -> None:
    shutil.rmtree(source_folder(table), ignore_errors=True)


def _laid_out(array: pa.Array, layout: str) -> pa.Array:
    """The array as a writer may have it in memory, which Arrow notes in the file: texts of a dictionary, 64-bit offsets."""
    kind = array.type
    if pa.types.is_struct(kind):
        children = [_laid_out(array.field(at), layout) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, names=[f.name for f in kind], mask=array.is_null())
    if layout == "dictionary" and pa.types.is_string(kind):
        return array.dictionary_encode()
    if layout == "large" and pa.types.is_string(kind):
        return array.cast(pa.large_string())
    if layout == "large" and pa.types.is_list(kind):
        return array.cast(pa.large_list(kind.value_field))
    return array


def _rows(step: h.Adopt) -> list[pa.Table]:
    """The rows of each file."""
    layout = step.options.get("layout", "") if step.source in {"folder", "hive"} else ""
    arrays = {
        name: embedded_array(kind, _padded_at_times(kind, step.values[name])) for name, kind in step.columns.items()
    }
    whole = pa.table({name: _laid_out(a, "" if name == step.partition else layout) for name, a in arrays.items()})
    size = max(-(-len(whole) // step.files), 1)
    return [whole.slice(at, size) for at in range(0, len(whole), size)] or [whole]


def _padded_at_times(kind: str, values: list[Any]) -> list[Any]:
    """The values of a CHAR as several writers leave them: some padded, some not."""
    if kind != "char":
        return values
    return [v.ljust(5) if v is not None and at % 3 == 1 else v for at, v in enumerate(values)]


def _by_spark(step: h.Adopt, folder: Path, spark: Any, view: str) -> None:
    settings = {
        "spark.sql.parquet.outputTimestampType": "INT96" if step.options.get("int96") else "TIMESTAMP_MICROS",
        "spark.sql.parquet.writeLegacyFormat": step.options.get("legacy", "false"),
    }
    before = {key: spark.conf.get(key) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        for at in range(step.files):
            writer = spark.sql(f"SELECT * FROM {view} WHERE k % {step.files} = {at}").coalesce(1).write.mode("append")
            writer = writer.option("parquet.block.row.count.limit", str(step.row_group))
            writer = writer.option("parquet.enable.dictionary", step.options.get("dictionary", "true"))
            writer = writer.option("parquet.page.row.count.limit", step.options.get("page_rows", "20000"))
            writer = writer.option("parquet.page.size", step.options.get("page_bytes", str(2**20)))
            writer = writer.option("parquet.page.size.row.check.min", "1")
            (writer.partitionBy(step.partition) if step.partition else writer).parquet(str(folder))
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def _arrow_options(step: h.Adopt) -> dict[str, Any]:
    return {
        "row_group_size": step.row_group,
        "use_deprecated_int96_timestamps": bool(step.options.get("int96")),
        "use_dictionary": step.options.get("dictionary", "true") == "true",
        "write_statistics": step.options.get("statistics", "true") == "true",
        "write_page_index": bool(step.options.get("page_index")),
        "max_rows_per_page": int(step.options.get("page_rows", 20_000)),
        "data_page_size": int(step.options["page_bytes"]) if "page_bytes" in step.options else None,
        "write_batch_size": 1 if "page_bytes" in step.options else None,
    }


def _parquet(step: h.Adopt, folder: Path) -> Path:
    folder.mkdir()
    for at, rows in enumerate(_rows(step)):
        pq.write_table(rows, folder / f"part-{at}.parquet", **_arrow_options(step))
    return folder


def _hive(step: h.Adopt, folder: Path) -> Path:
    assert step.partition is not None
    for at, rows in enumerate(_rows(step)):
        folder_values = [_folder_value(v) for v in rows[step.partition].to_pylist()]
        for value in dict.fromkeys(folder_values):
            mine = rows.filter(pa.array([v == value for v in folder_values])).drop_columns([step.partition])
            place = folder / f"{step.partition}={value}" / f"part-{at}.parquet"
            place.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(mine, place, **_arrow_options(step))
    folder.mkdir(exist_ok=True)
    return folder


def _folder_value(value: Any) -> str:
    return NULL_FOLDER if value is None else quote(str(value), safe=" ")


def _delta(step: h.Adopt, folder: Path) -> Path:
    properties = deltalake.WriterProperties(max_row_group_size=step.row_group)
    by = [step.partition] if step.partition else None
    for rows in _rows(step):
        deltalake.write_deltalake(
            folder, rows, mode="append", partition_by=by, writer_properties=properties, target_file_size=2**20
        )
    if "char" in step.columns.values():
        _declare_chars(folder, step)
    if step.options.get("checkpoint"):
        deltalake.DeltaTable(folder).create_checkpoint()
    if step.deleted and step.options.get("deletes") == "rewrite":
        deltalake.DeltaTable(folder).delete(f"k IN ({', '.join(map(str, step.deleted))})")
    elif step.deleted:
        _delta_vectors(folder, step)
    return folder


def _declare_chars(folder: Path, step: h.Adopt) -> None:
    """Commit a schema in which columns are CHAR: deltalake declares none."""
    commits = sorted((folder / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for path in commits for line in path.read_text().splitlines()]
    metadata = next(a["metaData"] for a in reversed(actions) if "metaData" in a)
    schema = json.loads(metadata["schemaString"])
    for field in schema["fields"]:
        field["metadata"] |= dict(KINDS[step.columns[field["name"]]].metadata)
    commit(folder, len(commits), [{"metaData": metadata | {"schemaString": json.dumps(schema)}}])


def _delta_vectors(folder: Path, step: h.Adopt) -> None:
    """Commit deletion vectors by hand: deltalake writes none."""
    places = {
        path: _ordinals(folder / path, step.deleted) for path in deltalake.DeltaTable(folder).get_add_actions()["path"].to_pylist()
    }  # fmt: skip
    commit_vectors(folder, places, stored=bool(step.options.get("stored")))


def commit_vectors(folder: Path, places: Mapping[str, Sequence[int]], *, stored: bool = False) -> None:
    """Commit the rows at these places of files of a Delta table as deleted."""
    commits = sorted((folder / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for path in commits for line in path.read_text().splitlines()]
    current_protocol = next(a["protocol"] for a in reversed(actions) if "protocol" in a)
    features = {
        *(current_protocol.get("readerFeatures") or ()),
        *(current_protocol.get("writerFeatures") or ()),
        "deletionVectors",
    }
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": sorted(features)}
    known = [name for name in sorted(features) if name in {"deletionVectors", "timestampNtz"}]
    changes: list[dict[str, Any]] = [{"protocol": protocol | {"readerFeatures": known}}]
    for action in [a["add"] for a in actions if "add" in a]:
        gone = places.get(action["path"])
        if gone:
            vector = stored_vectors(folder, gone)[0] if stored else inline_vector(gone)
            removed = {"path": action["path"], "deletionTimestamp": 1, "dataChange": True}
            changes += [{"remove": removed}, {"add": action | {"deletionVector": vector}}]
    commit(folder, len(commits), changes)


def _ordinals(file: Path, keys: Sequence[int]) -> list[int]:
    gone = set(keys)
    return [at for at, k in enumerate(pq.ParquetFile(file).read(["k"])["k"].to_pylist()) if k in gone]


def _iceberg(step: h.Adopt, folder: Path) -> Path:
    folder.mkdir()
    loads = _rows(step)
    table = catalog(folder).create_table(
        "n.t", loads[0].schema, properties={"write.parquet.row-group-limit": str(step.row_group)}
    )
    if step.partition:
        with table.update_spec() as spec:
            spec.add_field(step.partition, IdentityTransform(), f"{step.partition}_p")
    for rows in loads:
        table.append(rows.cast(table.schema().as_arrow()))
    if not step.deleted:
        return metadata_of(table)
    return DELETES[step.options.get("deletes", "rewrite") if not step.partition else "rewrite"](table, step.deleted)


def _iceberg_rewritten(table: Any, keys: Sequence[int]) -> Path:
    table.delete(f"k IN ({', '.join(map(str, keys))})")
    return metadata_of(table)


def _iceberg_positions(table: Any, keys: Sequence[int]) -> Path:
    rows = [(path, at) for path in data_paths(table) for at in _ordinals(local(path), keys)]
    return commit_deletes(metadata_of(table), [position_file(table, rows)])


def _iceberg_vectors(table: Any, keys: Sequence[int]) -> Path:
    found = {path: _ordinals(local(path), keys) for path in data_paths(table)}
    return commit_deletes(
        metadata_of(table), vector_files(table, {path: gone for path, gone in found.items() if gone}), version=3
    )


def _iceberg_equality(table: Any, keys: Sequence[int]) -> Path:
    data = pa.table({"k": pa.array(keys, pa.int64())})
    return commit_deletes(
        metadata_of(table), [equality_file(table, data, {"k": table.schema().find_field("k").field_id})]
    )


DELETES: dict[str, Callable[[Any, Sequence[int]], Path]] = {
    "rewrite": _iceberg_rewritten,
    "positions": _iceberg_positions,
    "vectors": _iceberg_vectors,
    "equality": _iceberg_equality,
}
WRITERS: dict[str, Callable[[h.Adopt, Path], Path]] = {
    "folder": _parquet,
    "hive": _hive,
    "delta": _delta,
    "iceberg": _iceberg,
}
