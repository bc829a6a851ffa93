"""JSON documents as text and as VARIANT: paths, and readers that follow Spark."""
