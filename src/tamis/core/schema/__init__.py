"""Schema migration rules, the registry of schemas, and reader fencing."""

from tamis.core.schema.deleted_fields import Dropped, dropped_between, dropped_in
from tamis.core.schema.difference import difference
from tamis.core.schema.history_checks import (
    MigrationType,
    check_migration,
    check_reader,
    check_table_reader,
    fence,
    rows_fit,
)
from tamis.core.schema.migration_rules import Violation, evolve, violations
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
    "difference",
    "dropped_between",
    "dropped_in",
    "evolve",
    "fence",
    "rows_fit",
    "violations",
]
