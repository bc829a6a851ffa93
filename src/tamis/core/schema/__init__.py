"""Schema migration rules, the registry of schemas, and reader fencing."""

from tamis.core.schema.deleted_fields import Dropped, dropped_between, dropped_in
from tamis.core.schema.difference import schema_changes
from tamis.core.schema.history_checks import (
    MigrationType,
    check_migration,
    check_reader,
    check_table_reader,
    fence_reader,
    rows_fit,
)
from tamis.core.schema.migration_rules import Violation, evolve_type, migration_violations
from tamis.core.schema.schema_sequence import Evolution, Fence

__all__ = [
    "Dropped",
    "Evolution",
    "Fence",
    "MigrationType",
    "Violation",
    "check_migration",
    "check_reader",
    "check_table_reader",
    "dropped_between",
    "dropped_in",
    "evolve_type",
    "fence_reader",
    "migration_violations",
    "rows_fit",
    "schema_changes",
]
