"""The procedures of CALL, a module for each kind of verb: each lists its own as ``PROCEDURES``."""
