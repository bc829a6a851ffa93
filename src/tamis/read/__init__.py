"""The lazy reader of one part (seed 003)."""
