"""Encrypted Parquet is refused before anything is written, also where its footer can be read without a key."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import tamis
from tamis.errors import InvalidInput

ROWS = pa.table({"a": [1, 2], "b": ["x", "y"]})


class _Keys(pe.KmsClient):  # type: ignore[misc]  # pyarrow ships no types for it
    """Wraps no key; tests do not need the secret kept."""

    def __init__(self, _: Any) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, wrapped: bytes, _: str) -> bytes:
        return base64.b64decode(wrapped)


@pytest.mark.parametrize("footer", ["plain", "encrypted"])
@pytest.mark.parametrize("columns", [["b"], ["a", "b"]])
def test_an_encrypted_file_is_refused(tmp_path: Path, footer: str, columns: list[str]) -> None:
    factory = pe.CryptoFactory(_Keys)
    chosen = pe.EncryptionConfiguration("footer", column_keys={"key": columns}, plaintext_footer=footer == "plain")
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), chosen)
    (tmp_path / "source").mkdir()
    pq.write_table(ROWS, tmp_path / "source" / "a.parquet")
    with pq.ParquetWriter(tmp_path / "source" / "b.parquet", ROWS.schema, encryption_properties=properties) as writer:
        writer.write_table(ROWS)
    end = (tmp_path / "source" / "b.parquet").read_bytes()[-4:]
    assert end == (b"PAR1" if footer == "plain" else b"PARE")
    with pytest.raises(InvalidInput) as caught:
        tamis.adopt(tmp_path / "source", tmp_path / "table")
    assert (caught.value.code, caught.value.name) == ("ENCRYPTED_FILE", "b.parquet")
    assert not (tmp_path / "table").exists()
