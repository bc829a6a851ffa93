"""Statistics of columns: bounds, value sets, clustering tuples, pages."""
