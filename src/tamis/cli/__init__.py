"""The command line: ``tamis create | ingest | query | explain | describe | history | demo``."""

from tamis.cli.app import main

__all__ = ["main"]
