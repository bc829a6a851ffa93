"""The filter language: tree, function catalogue, parse, evaluate."""
