"""Operations on how a table lies: compaction, clustering, indexes."""
