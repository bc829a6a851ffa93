"""What needs no storage and no engine: types, schemas, the filter language, pruning, statistics."""
