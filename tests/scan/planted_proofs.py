"""Wrong proofs to plant, and an environment that reports them."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.core.pruning import Decision
from tamis.world import World


class Production(World):
    """An environment in which a violation is reported, not raised."""

    def environment(self) -> dict[str, str]:
        return {}


def planted(monkeypatch: pytest.MonkeyPatch, module: Any, change: Any) -> None:
    """Has ``module`` believe what ``change`` makes of each decision."""
    real = module.decide

    def wrong(*args: Any, **more: Any) -> Decision:
        decision = real(*args, **more)
        change(decision)
        return decision

    monkeypatch.setattr(module, "decide", wrong)


def skip_all(decision: Decision) -> None:
    decision.none[:], decision.skipped_by[:] = True, 0


def all_match(decision: Decision) -> None:
    decision.all[:] = True
