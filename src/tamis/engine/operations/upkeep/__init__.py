"""Operations that keep a table healthy: vacuum, and verification of what is stored."""
