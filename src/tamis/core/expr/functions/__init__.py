"""The families of functions, a folder each. ``all_families`` declares them; ``tamis.core.expr`` imports it."""
