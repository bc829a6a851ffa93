"""Functions of arrays, maps and structs."""
