"""JSON documents, as text and as VARIANT: paths into them, and reading them as Spark does."""
