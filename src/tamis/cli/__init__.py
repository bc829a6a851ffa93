"""The command line ``tamis``; docs/command-line.md lists its commands."""

from tamis.cli.app import main

__all__ = ["main"]
