"""Functions of JSON text and of VARIANT."""
