"""Operations that change rows."""
