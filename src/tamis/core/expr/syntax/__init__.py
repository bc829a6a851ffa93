"""Spark's grammar: text to tokens, and tokens to a syntax tree, without the meaning of names."""

from tamis.core.expr.syntax.parser import data_type, parse_column_list, parse_expression, parse_fields
from tamis.core.expr.syntax.problem import SyntaxProblem

__all__ = ["SyntaxProblem", "data_type", "parse_column_list", "parse_expression", "parse_fields"]
