"""``tamis.attach``: makes a warehouse a catalog of the running session, its later sessions and foreachBatch's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tamis.engine.scan.scan_options import mapping_items
from tamis.errors import AlreadyExists, InvalidInput
from tamis.spark.catalog.catalog import Catalog, catalog_interfaces
from tamis.spark.catalog.path_source import register_source
from tamis.spark.catalog.spark_caches import watch_spark_caches
from tamis.spark.catalog.warehouse_paths import Warehouse
from tamis.spark.executors.worker_python import choose_python
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.jvm_bridge.session_checks import check_classic
from tamis.spark.options.hadoop_options import session_store
from tamis.spark.sql.statements import extend_parser
from tamis.spark.sql.table_changes import register_table_changes
from tamis.spark.write import dml_by_path
from tamis.storage.object_store import Store
from tamis.storage.object_store.storage_options import REDACTED

_KEY = "spark.sql.catalog."
_REDACTED = "spark.sql.redaction.options.regex"


def attach(spark: Any, name: str, warehouse: str | Path, *, storage_options: Mapping[str, Any] | None = None) -> None:
    """Register the tables below ``warehouse`` (a folder or URL) with Spark as catalog ``name``.

    Table ``db.t`` is stored at ``<warehouse>/db/t``. A second call with the same folder does nothing. Sessions
    created later (``newSession``, foreachBatch's) have the catalog too; in an existing one, call this again. Workers
    run the Python of ``PYSPARK_PYTHON`` or ``spark.pyspark.python``, else the driver's if they are on its machine. On
    S3, what ``storage_options`` leave open is taken from the session's Hadoop keys ``fs.s3a.*``.
    Raises ``AlreadyExists`` if the name leads elsewhere, ``InvalidInput`` for a bad name, bad options, a warehouse
    that is a file, or a Spark Connect session.
    """
    check_classic(spark)
    _check_name(name)
    java = bridge_of(spark)
    root = session_store(java, spark, warehouse, dict(mapping_items(storage_options or {}, "storage_options")))
    _check_folder(root)
    application = spark.sparkContext.applicationId
    known = java.registered_catalog(name)
    if known is not None and known.application == application:
        if known.warehouse.root != root:
            raise _taken(name, known.warehouse.root.url)
        class_name = java.catalog_class
    else:
        other = spark.conf.get(_KEY + name, None)
        if other is not None and other != java.catalog_class:
            raise _taken(name, other)
        catalog = Catalog(java, name, Warehouse(root), application)
        class_name = java.register_catalog(
            name, java.implement(catalog_interfaces(java), catalog), catalog_interfaces(java)
        )
    register_source(java)
    extend_parser(java, spark)
    watch_spark_caches(java)
    register_table_changes(java, spark)
    spark.conf.set(_KEY + name, class_name)
    spark._jsparkSession.sharedState().conf().set(_KEY + name, class_name)
    _hide_storage_options(spark)
    choose_python(spark.sparkContext, wait=False)


def _hide_storage_options(spark: Any) -> None:
    """Add the names of storage options to those whose values Spark does not show in plans.

    Spark hides secrets and tokens by itself, but neither the keys of Azure and GCS nor access keys and endpoints.
    This holds for the session and for later ones, as the catalog does.
    """
    for conf in (spark.conf, spark._jsparkSession.sharedState().conf()):
        hidden = conf.get(_REDACTED, "(?i)url")
        if REDACTED not in hidden:
            conf.set(_REDACTED, f"({hidden})|{REDACTED}")


def _check_name(name: Any) -> None:
    if (
        not isinstance(name, str)
        or not name.strip()
        or set(name) & set(".`\0")
        or name.lower() in {"spark_catalog", "system", dml_by_path.CATALOG}
    ):
        raise InvalidInput(
            f"{name!r} cannot name a catalog.",
            code="BAD_NAME",
            name=str(name),
            remedy="Use a word without dots, such as lake.",
        )


def _check_folder(root: Store) -> None:
    """A local warehouse need not be there yet, but nothing that it would lie in may be a file."""
    if root.location.scheme != "file":
        return
    path = Path(root.location.path)
    there = next((p for p in (path, *path.parents) if p.exists()), None)
    if there is not None and not there.is_dir():
        raise InvalidInput(
            f"{there} is a file.", code="NOT_A_FOLDER", name=str(path), remedy="Give the path of a folder."
        )


def _taken(name: str, where: str) -> AlreadyExists:
    return AlreadyExists(
        f"Catalog {name!r} is already attached to {where}, or with other storage options.",
        code="CATALOG_EXISTS",
        name=name,
        remedy="Choose another name.",
    )
