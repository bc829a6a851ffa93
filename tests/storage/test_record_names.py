"""Names in the log that changed before the first release are still read."""

from __future__ import annotations

from tamis.storage.commit_log.commit_record import Commit, commit_from_json, commit_to_json
from tamis.storage.commit_log.model import Operation


def test_what_a_vacuum_lets_vanish_has_had_another_name() -> None:
    stored = commit_to_json(Commit(3, "t", "o", 1, Operation("vacuum"), 0, 0, vacuum=(2, 77)))
    assert stored["vacuum"] == [2, 77]
    earlier = {("lets_go" if name == "vacuum" else name): value for name, value in stored.items()}
    assert commit_from_json(earlier).vacuum == (2, 77) == commit_from_json(stored).vacuum
