"""Servers that an attached driver starts: Spark Connect and Thrift (JDBC)."""
