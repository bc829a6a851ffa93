"""Collects the paths of JSON text.

Documents of a few shapes are read by ``document_template``; the others are parsed by ``text_paths``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tamis.core.stats.json_paths.document_template import Block, Template
from tamis.core.stats.json_paths.json_numbers import Flags, Ints
from tamis.core.stats.json_paths.path_rows import (
    INCOMPLETE,
    LIST,
    MAP,
    ROOT,
    STRANGE,
    Paths,
    PathStatistics,
    combine_paths,
    join_documents,
)
from tamis.core.stats.json_paths.path_selection import PathSelection
from tamis.core.stats.json_paths.text_paths import DECODER, UnusablePaths, no_paths
from tamis.core.stats.json_paths.text_paths import paths_of as parsed_paths_of
from tamis.sizes import SIZES

BYTES, LEAST, FEW, TEMPLATES = 2**20, 256, 16, 8
"""Limits of template matching.

Bytes and documents per batch (few enough to stay in the cache, measured), the number of documents below which
templates do not pay off, and the number of templates.
"""


ENOUGH = SIZES.template_documents
"""Documents of a block from which templates are tried at all: finding one costs as much as parsing hundreds."""


class Documents:
    """Reads the texts of one column and remembers the shapes found so far."""

    def __init__(self, selection: PathSelection | None = None) -> None:
        self._templates: list[Template] = []
        self._selection = selection or PathSelection()

    def paths_of(self, texts: pa.Array) -> Paths:
        """Return the paths of a block's documents.

        One strange document makes the root STRANGE, and no other path is given.
        """
        texts = texts.drop_null() if texts.null_count else texts
        try:
            texts.validate(full=True)
            return self._paths_of(texts)
        except (UnusablePaths, pa.ArrowInvalid, RecursionError, ArithmeticError):
            return no_paths()

    def _paths_of(self, texts: pa.Array) -> Paths:
        if len(texts) <= LEAST < ENOUGH:  # one batch, and no templates
            found = parsed_paths_of(texts, self._selection)
            if found[ROOT].kinds & STRANGE:
                raise UnusablePaths
            return found
        tallies: dict[Template, _Tally] = {}
        found, count = Paths(), max(LEAST, len(texts) * BYTES // max(texts.nbytes, 1))
        for start in range(0, len(texts) or 1, count):
            block = texts.slice(start, count)
            left = self._read(block, tallies) if len(texts) >= ENOUGH and len(block) >= FEW else np.arange(len(block))
            if len(left) or not len(block):
                rest = block if len(left) == len(block) else block.take(pa.array(left))
                now = parsed_paths_of(rest, self._selection)
                if now[ROOT].kinds & STRANGE:
                    raise UnusablePaths
                found = self._selection.fold_objects(combine_paths(found, now) if found else now)
        for template, tally in tallies.items():
            now = template.paths(tally.documents, tally.scalars())
            found = self._selection.fold_objects(combine_paths(found, now) if found else now)
        return found

    def _read(self, texts: pa.Array, tallies: dict[Template, _Tally]) -> Ints:
        """Read the documents that match a template, earlier templates first; return the other documents."""
        block = Block(texts)
        usable, other = np.flatnonzero(block.usable), np.flatnonzero(~block.usable)
        known, self._templates = self._templates, []
        while len(usable) >= FEW and len(self._templates) < TEMPLATES:
            template = known.pop(0) if known else _template(texts.slice(int(usable[0]), 1))
            if template is None:
                break
            taken = _match_template(template, block, usable, tallies)
            enough = 2 * TEMPLATES * np.count_nonzero(taken) >= len(usable)
            usable = usable[~taken]  # must precede the checks below: these documents are already counted
            if enough:
                self._templates.append(template)
            elif not known:
                break  # too few matches to pay for the search
        self._templates += known
        return np.sort(np.concatenate([other, usable]))


class _Tally:
    """The statistics of the documents of one template."""

    __slots__ = ("_blocks", "documents")

    def __init__(self) -> None:
        self.documents = 0
        self._blocks: list[list[PathStatistics]] = []

    def add(self, documents: int, scalars: list[PathStatistics]) -> None:
        self.documents += documents
        self._blocks.append(scalars)

    def scalars(self) -> list[PathStatistics]:
        return [join_documents(found) for found in zip(*self._blocks, strict=True)]


def _match_template(template: Template, block: Block, rows: Ints, tallies: dict[Template, _Tally]) -> Flags:
    """Return which of ``rows`` match the template and add them to its tally."""
    fits: Flags = block.count[rows] == template.quotes
    every = bool(fits.all())
    scalars, like = template.read(block, rows if every else rows[fits])
    documents = int(np.count_nonzero(like))
    if documents:
        tallies.setdefault(template, _Tally()).add(documents, scalars)
    if every:
        return like
    fits[fits] = like
    return fits


def _template(text: pa.Array) -> Template | None:
    """Return the document as a template, or None if it cannot be one. Raises ``UnusablePaths``."""
    judged = parsed_paths_of(text)
    if judged[ROOT].kinds & STRANGE:
        raise UnusablePaths
    if not judged[ROOT].kinds & (MAP | LIST) or any(found.kinds & INCOMPLETE for found in judged.values()):
        return None
    data = text[0].as_py()
    template = Template(data.encode(), DECODER.decode(data))
    return template if template.usable else None
