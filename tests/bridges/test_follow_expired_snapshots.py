"""A followed Iceberg table may have expired the snapshots that were taken, unless they must be read again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyiceberg.table.update import RemoveSnapshotsUpdate

from tamis.errors import CorruptData
from tests.bridges import iceberg_tables as ice
from tests.bridges.followed_iceberg_tables import DATA, Followed, made


def test_the_parent_of_the_next_snapshot_may_have_expired(tmp_path: Path) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    taken = followed.source.current_snapshot().snapshot_id
    followed.append({"k": 3, "c": "c"})
    path = ice.metadata_of(followed.source)
    content = json.loads(path.read_text())
    content["snapshots"] = [one for one in content["snapshots"] if one["snapshot-id"] != taken]
    path.write_text(json.dumps(content))
    assert followed.sync() == 1
    followed.check("c = 'c'")


def test_an_expired_snapshot_cannot_be_read_again(tmp_path: Path) -> None:
    source = made(tmp_path, DATA)
    with source.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("c")
    followed = Followed(tmp_path, source)
    taken = source.current_snapshot().snapshot_id
    followed.set_schema(0)
    followed.append({"k": 3, "c": "c"})
    with followed.source.transaction() as change:
        change._apply((RemoveSnapshotsUpdate(snapshot_ids=[taken]),))
    followed.source.refresh()
    with pytest.raises(CorruptData, match="SOURCE_HISTORY_GONE"):
        followed.sync()
    followed.sync(skip_history=True)
    followed.check("c = 'a'")


@pytest.mark.parametrize("lost", ["data/*.parquet", "metadata/*-m0.avro", "metadata/snap-*.avro"])
def test_a_snapshot_between_whose_files_were_removed_can_be_left_out(tmp_path: Path, lost: str) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    place = tmp_path / "warehouse" / "n" / "t"
    before = set(place.glob(lost))
    followed.append({"k": 3, "c": "c"})
    (file,) = set(place.glob(lost)) - before
    followed.source.overwrite(DATA)
    followed.source.refresh()
    data = file.read_bytes()
    file.unlink()
    with pytest.raises(CorruptData, match=r"SOURCE_HISTORY_GONE.*skip_history"):
        followed.sync()
    followed.sync(skip_history=True)
    followed.check("c = 'a'")
    file.write_bytes(data)
    before = set(place.glob("data/*.parquet"))
    followed.append({"k": 4, "c": "d"})
    (file,) = set(place.glob("data/*.parquet")) - before
    followed.append({"k": 5, "c": "e"})
    file.unlink()
    with pytest.raises(CorruptData, match="SOURCE_CHANGED"):
        followed.sync()
