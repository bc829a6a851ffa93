"""Code that runs in executors, and the cutting of plans into tasks."""
