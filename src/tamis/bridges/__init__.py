"""Other table formats: adoption of their tables without copying, and exports that they read."""
