"""Where a table lies: object stores, the log, data files."""
