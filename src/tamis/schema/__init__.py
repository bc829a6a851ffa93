"""Migration rules, the registry of schemas, reader fencing (seed 001)."""
