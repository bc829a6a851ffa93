"""Statistics of paths in JSON documents."""
