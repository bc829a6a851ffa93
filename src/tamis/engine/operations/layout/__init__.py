"""Operations on how a table lies: compaction, indexes, vacuum, verification."""
