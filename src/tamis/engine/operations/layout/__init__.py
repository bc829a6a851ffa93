"""Operations on a table's layout: compaction, indexes, vacuum, verification."""
