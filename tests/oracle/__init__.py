"""Random whole queries over random tables, judged against plain Spark over Parquet."""
