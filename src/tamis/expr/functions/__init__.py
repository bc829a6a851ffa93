"""The families of functions. Importing this module declares them all."""

from tamis.expr.functions import arithmetic, casts, compare, conditional, days, epoch, fields, instants, logic, text, truncate

__all__ = ["arithmetic", "casts", "compare", "conditional", "days", "epoch", "fields", "instants", "logic", "text", "truncate"]
