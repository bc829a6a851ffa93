"""Migration rules, the registry of schemas, reader fencing (seed 001)."""

from tamis.schema.check import check_migration, check_reader, check_table_reader
from tamis.schema.rules import Violation, evolve, violations

__all__ = ["Violation", "check_migration", "check_reader", "check_table_reader", "evolve", "violations"]
