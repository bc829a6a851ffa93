"""Spark's grammar: text to tokens, and tokens to a syntax tree, without the meaning of names."""

from tamis.core.expr.syntax.parser import columns, data_type, expression, fields
from tamis.core.expr.syntax.problem import SyntaxProblem

__all__ = ["SyntaxProblem", "columns", "data_type", "expression", "fields"]
