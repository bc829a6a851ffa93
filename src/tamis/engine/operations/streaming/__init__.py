"""Following a table as it grows."""
