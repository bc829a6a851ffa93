"""The choice of lazy or eager reads per chunk.

Lazy reading loses if leaders dominate the bytes, if most rows survive, or if the survivors are so scattered that nearly
all rows of the followers are decoded.

The first estimate of survivors comes from bounds. Later estimates use the observed share, scaled by the ratio
of the bound estimates for this chunk and the last. Scattering is never estimated, only observed.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.core.pruning.selectivity import Shares
from tamis.cost_model import COSTS
from tamis.storage.files import PartFile

MOST_BYTES = COSTS.lazy_leader_share
"""Leaders' share of bytes from which a second read for followers does not pay."""
MOST_ROWS = COSTS.lazy_kept_share
"""Share of surviving rows from which a chunk is read whole."""
EAGER_DECODED_SHARE = COSTS.lazy_decoded_share
"""Share of the followers' rows that are decoded from which the next chunk is read whole."""
SPARSE = COSTS.lazy_sparse_share
"""Share of surviving rows below which more rows are filtered before followers are fetched."""
_SAMPLE = 4
"""Blocks sampled for the share of bytes."""


class ScanScattering:
    """Whether the survivors of a scan were scattered in all chunks so far; its parts share it, in any thread."""

    def __init__(self) -> None:
        self._scattered = self._clustered = False

    @property
    def is_everywhere(self) -> bool:
        """Whether chunks were observed, and lazy reading did not pay in any of them."""
        return self._scattered and not self._clustered

    def add(self, decoded: float) -> None:
        """Record the share of the followers' rows that a lazy read of a chunk decodes."""
        if decoded >= EAGER_DECODED_SHARE:
            self._scattered = True
        else:
            self._clustered = True


class LazyChoice:
    """The choice between lazy and eager per chunk: ``mode`` ``on`` and ``off`` are fixed, ``auto`` adapts.

    ``scattering`` holds the observations of the scan's other parts. It decides about the first chunk.
    """

    def __init__(
        self,
        mode: str,
        part: PartFile,
        leaders: Sequence[int],
        followers: Sequence[int],
        scattering: ScanScattering | None = None,
    ) -> None:
        blocks = range(min(_SAMPLE, len(part.block_rows)))
        leading, following = part.cost(leaders, blocks), part.cost(followers, blocks)
        self.leader_share = leading / max(leading + following, 1)
        self.expected_shares: Shares | None = None
        """The share of surviving rows per block, estimated from statistics; None: unknown."""
        self._mode = mode
        self._observed_share: float | None = None
        self._estimated_share = 0.0
        self._scattering = scattering or ScanScattering()
        self._decoded_share = 1.0 if self._scattering.is_everywhere else 0.0

    @property
    def needs_probe(self) -> bool:
        """Whether the share of survivors is unknown, so that a single block should be read first."""
        return (
            self._mode == "auto"
            and self.expected_shares is None
            and self._observed_share is None
            and self.leader_share < MOST_BYTES
        )

    @property
    def needs_decoded_share(self) -> bool:
        """Whether the choice for later chunks depends on the share of rows that a lazy read decodes."""
        return self._mode == "auto" and self.leader_share < MOST_BYTES

    @staticmethod
    def is_dense(kept: int, rows: int) -> bool:
        """Whether so many of ``rows`` rows survive that survivors are assumed on every page."""
        return kept >= MOST_ROWS * rows

    @property
    def is_sparse(self) -> bool:
        """Whether almost no row of the last chunk survived."""
        return self._observed_share is not None and self._observed_share < SPARSE

    def prefers_lazy(self, chunk: Sequence[int]) -> bool:
        """Whether to read the leaders of these blocks first, and followers for the survivors only."""
        if self._mode != "auto":
            return self._mode == "on"
        if self.leader_share >= MOST_BYTES or self._decoded_share >= EAGER_DECODED_SHARE:
            return False
        return self._expected_share(chunk) < MOST_ROWS

    def record_survivors(self, chunk: Sequence[int], kept: int, rows: int, decoded: float | None) -> None:
        """Record that ``kept`` of the ``rows`` of these blocks survived.

        ``decoded`` is the share of the followers' rows that a lazy read decodes for them; None if an index chose
        the rows.
        """
        self._observed_share, self._estimated_share = kept / max(rows, 1), self._estimate_share(chunk)
        self._decoded_share = decoded or 0.0
        if decoded is not None and self.needs_decoded_share:
            self._scattering.add(decoded)

    def _expected_share(self, chunk: Sequence[int]) -> float:
        estimate = self._estimate_share(chunk)
        if self._observed_share is None or not self._estimated_share:
            return estimate if self._observed_share is None else self._observed_share
        return self._observed_share * estimate / self._estimated_share

    def _estimate_share(self, chunk: Sequence[int]) -> float:
        return 0.0 if self.expected_shares is None else float(self.expected_shares[list(chunk)].mean())
