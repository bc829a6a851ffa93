"""Statistics: collect, JSON paths, trim, encode."""
