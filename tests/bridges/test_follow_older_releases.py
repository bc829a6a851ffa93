"""A table that an older release followed gets its columns back, or its synchronization says how it does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tamis.bridges.sources.iceberg_columns import BARE_NAMES, NAME_MAPPING, KnownColumns
from tamis.errors import InvalidInput
from tamis.storage.commit_log import Operation, Proposal, commit
from tests.bridges.followed_iceberg_tables import ABSENT, DATA, MAPPING, RIGHT, WRONG, Followed, bare, made, ordered


def test_a_table_in_which_an_older_release_took_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = Followed(tmp_path, made(tmp_path, DATA))
    followed.change_schema(lambda update: update.delete_column("c"))
    followed.append({"k": 3})
    followed.sync()
    followed.set_schema(0)
    with monkeypatch.context() as older:
        older.setattr(KnownColumns, "is_stale", lambda *_: False)
        followed.sync()
        followed.append({"k": 4, "c": "d"})
    assert followed.table.scan("c IS NULL").count() == 1, "its parts are of the schema before and of that without it"
    with pytest.raises(InvalidInput, match="SOURCE_LAYOUT") as caught:
        followed.sync()
    assert "sync(skip_history=True)" in caught.value.remedy
    assert followed.sync(skip_history=True) == 1
    followed.check("c = 'a'")
    assert followed.sync() == 0


def as_by_an_older_release(followed: Followed) -> None:
    """Leave out what older releases did not record of the columns of the source."""
    snapshot = followed.table.snapshot
    source = snapshot.head.sources[-1]
    left = {name: value for name, value in source.properties.items() if name not in {BARE_NAMES, NAME_MAPPING}}
    head = replace(
        snapshot.head,
        sources=(replace(source, properties=left),),
        highest_column_id=max(snapshot.head.schemas[-1].paths),
    )
    proposal = Proposal(
        Operation("sync"),
        read_version=snapshot.version,
        read_operation_id=snapshot.commit.operation_id,
        head=head,
        follows=True,
        table_id=head.table_id,
    )
    commit(snapshot.store, proposal)


@pytest.mark.parametrize("skip_history", [True, False])
def test_a_column_dropped_before_an_older_release_adopted_comes_back(tmp_path: Path, skip_history: bool) -> None:
    source = made(tmp_path, DATA)
    with source.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("c")
    followed = Followed(tmp_path, source)
    as_by_an_older_release(followed)
    followed.set_schema(0)
    followed.sync(skip_history=skip_history)
    followed.check("c = 'a'")


@pytest.mark.parametrize(("first", "then"), [(WRONG, RIGHT), (ABSENT, RIGHT), (WRONG, None)])
def test_a_mapping_changes_that_an_older_release_did_not_record(
    tmp_path: Path, first: dict[int, list[str]], then: dict[int, list[str]] | None
) -> None:
    followed = bare(tmp_path, first)
    as_by_an_older_release(followed)
    if then is None:
        with followed.source.transaction() as change:
            change.remove_properties(MAPPING)
    else:
        followed.map_names(then)
    followed.append({"k": 3, "c": "c"})
    followed.sync()
    fresh = followed.adopt("fresh", follow=False)
    for text in ("c = 'a'", "c IS NULL", "c IS NOT NULL", "k > 0"):
        assert ordered(followed.table.scan(text).to_arrow()) == ordered(fresh.scan(text).to_arrow()), text
