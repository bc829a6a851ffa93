"""Spark's grammar: text as tokens, tokens as a tree of what people wrote. What the words mean is not known here."""

from tamis.core.expr.syntax.parser import columns, data_type, expression, fields
from tamis.core.expr.syntax.problem import SyntaxProblem

__all__ = ["SyntaxProblem", "columns", "data_type", "expression", "fields"]
