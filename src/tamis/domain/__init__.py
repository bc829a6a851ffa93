"""Specs and their lattice; abstract interpretation of filters over columns of statistics (seed 000)."""
