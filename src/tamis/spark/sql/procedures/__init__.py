"""The procedures of CALL, by kind. Each module lists its own in ``PROCEDURES``."""
