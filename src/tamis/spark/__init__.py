"""The connector to Spark."""
