"""The catalog that Spark sees: names, namespaces, tables."""
