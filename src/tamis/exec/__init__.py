"""How work runs: tasks, sort, write; the local implementation."""
