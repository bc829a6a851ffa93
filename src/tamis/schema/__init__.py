"""Migration rules, the registry of schemas, reader fencing (seed 001)."""

from tamis.schema.check import MigrationType, check_migration, check_reader, check_table_reader, fence, rows_fit
from tamis.schema.difference import difference
from tamis.schema.memory import Dropped, dropped_between, dropped_in
from tamis.schema.registry import Evolution, Fence
from tamis.schema.rules import Violation, evolve, violations

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
