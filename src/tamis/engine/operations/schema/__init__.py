"""Operations that change the schema."""
