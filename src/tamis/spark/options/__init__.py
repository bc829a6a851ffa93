"""Options of readers and writers, and where a session's storage options come from."""
