"""The migration rules between schemas.

Invariant: ``new`` is a valid migration of a history iff, at every depth of structs, lists and map values, it
can be reached by making fields nullable, deleting fields, and adding nullable fields that never existed
before. Nothing else is allowed: no reordering, no re-adding of a deleted field, no type change, no
tightening, no new required field, and no change of map keys. Any combination of legal changes is legal. A
reader is valid iff its schema is a valid migration of the history it reads.

A map's key widens where other types do, because different keys stay different. A struct that is a key gains and
loses no field: without a field, two keys of one map could become one, and a new one makes keys of newer rows
different from those of older ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from tamis.core.schema.migration_types import Leaf, Mapping, Place, Record, Sequence, Shape
from tamis.core.schema.widening import type_widens


@dataclass(frozen=True, slots=True)
class Violation:
    """A change that violates the rules.

    ``rule`` is a stable word, ``path`` the dotted path of the offending field.
    """

    rule: str
    path: str
    said: str
    key: Hashable = None
    """The identity of the field (its name, or its column id)."""
    reader: str = ""
    """The problem as described to a reader that expects the field in another form."""

    @property
    def text(self) -> str:
        return f"Field {self.path!r} {self.said}."

    @property
    def fenced(self) -> str:
        """The message for a reader, whose schema is ``new``."""
        return f"Field {self.path!r} {self.reader or self.said}."


def migration_violations(old: Record, new: Record, *, widen: bool = False) -> Iterator[Violation]:
    """Yield every violation in ``new`` as a migration of ``old``.

    ``old`` is a migration type, so it includes deleted fields.
    """
    yield from _record(old, new, (), widen)


def evolve_type(old: Record, new: Record) -> Record:
    """Return the migration type after ``new`` has become the latest schema.

    It has the fields of ``new`` and every field ever deleted.
    """
    merged = _evolve(old, new)
    assert isinstance(merged, Record)
    return merged


def _record(old: Record, new: Record, path: tuple[str, ...], widen: bool) -> Iterator[Violation]:
    before = {place.key: place for place in old.fields}
    seen: set[Hashable] = set()
    for place in new.fields:
        here = (*path, place.name)
        if place.key in seen:
            yield _violation("duplicate_field", here, "is a duplicate", place.key)
        seen.add(place.key)
        if place.key in before:
            yield from _place(before[place.key], place, here, widen)
        elif place.key in old.deleted:
            yield _violation(
                "readd_deleted", here, "was deleted and cannot come back as the same field", place.key, "was deleted"
            )
        elif not place.nullable:
            yield _violation("add_required", here, "is new and not nullable: older data has no value for it", place.key)
    kept_before = [place.key for place in old.fields if place.key in seen]
    kept_after = [place for place in new.fields if place.key in before]
    for expected, place in zip(kept_before, kept_after, strict=False):
        if expected != place.key:
            yield _violation(
                "reorder",
                (*path, place.name),
                "has changed its place among the fields that were there before",
                place.key,
            )
            break


def _place(old: Place, new: Place, path: tuple[str, ...], widen: bool) -> Iterator[Violation]:
    if old.nullable and not new.nullable:
        said = "was nullable and is not any more"
        yield _violation("tighten", path, said, new.key, "may be NULL by now, and this reader takes it for NOT NULL")
    yield from _shape(old.shape, new.shape, path, widen, new.key)


def _shape(old: Shape, new: Shape, path: tuple[str, ...], widen: bool, key: Hashable) -> Iterator[Violation]:
    match old, new:
        case Record(), Record():
            yield from _record(old, new, path, widen)
        case Sequence(kind=before), Sequence(kind=after) if before == after:
            yield from _place(old.item, new.item, (*path, "element"), widen)
        case Mapping(), Mapping():
            if not _same_keys(_live(old.key.shape), _live(new.key.shape), widen):
                said = "is a map key: it may widen, but any other change would make other keys equal"
                reader = "is a map key and has another type by now"
                yield _violation("map_key", (*path, "key"), said, new.key.key, reader)
            yield from _place(old.value, new.value, (*path, "value"), widen)
        case Leaf(), Leaf() if old.type == new.type or (widen and type_widens(old.type, new.type)):
            return
        case _:
            reader = f"is {_text(old)} by now, and this reader takes it for {_text(new)}"
            yield _violation("type_change", path, f"was {_text(old)} and is {_text(new)}", key, reader)


def _same_keys(old: Shape, new: Shape, widen: bool) -> bool:
    """Return whether keys that are equal, and those that are not, stay so."""
    match old, new:
        case Leaf(), Leaf():
            return old == new or (widen and type_widens(old.type, new.type))
        case Record(fields=before), Record(fields=after) if len(before) == len(after):
            return all(
                replace(a, shape=b.shape) == b and _same_keys(a.shape, b.shape, widen)
                for a, b in zip(before, after, strict=True)
            )
        case _:
            return old == new


def _evolve(old: Shape, new: Shape) -> Shape:
    match old, new:
        case Record(), Record():
            before = {place.key: place for place in old.fields}
            now = {place.key for place in new.fields}
            fields = tuple(
                replace(place, shape=_evolve(before[place.key].shape, place.shape)) if place.key in before else place
                for place in new.fields
            )
            gone = {place.key: place.name for place in old.fields if place.key not in now}
            return Record(fields, old.deleted | gone)
        case Sequence(), Sequence():
            return replace(new, item=replace(new.item, shape=_evolve(old.item.shape, new.item.shape)))
        case Mapping(), Mapping():
            return replace(new, value=replace(new.value, shape=_evolve(old.value.shape, new.value.shape)))
        case _:
            return new


def _live(shape: Shape) -> Shape:
    """Return the shape without its deleted fields."""
    match shape:
        case Record():
            return Record(tuple(replace(place, shape=_live(place.shape)) for place in shape.fields))
        case Sequence():
            return replace(shape, item=replace(shape.item, shape=_live(shape.item.shape)))
        case Mapping():
            return Mapping(
                replace(shape.key, shape=_live(shape.key.shape)), replace(shape.value, shape=_live(shape.value.shape))
            )
        case _:
            return shape


def _text(shape: Shape) -> str:
    match shape:
        case Leaf():
            return shape.text
        case Record():
            return "a struct"
        case Sequence():
            return "a list"
        case _:
            return "a map"


def _violation(rule: str, path: tuple[str, ...], text: str, key: Hashable, reader: str = "") -> Violation:
    return Violation(rule, ".".join(path), text, key, reader)
