"""The command line ``tamis``; docs/command-line.md lists its commands."""

from tamis.cli.entry import main

__all__ = ["main"]
