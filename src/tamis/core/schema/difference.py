"""Describes the changes between two schemas in words, for history and dry runs.

Fields are matched by id, so a rename is shown as a rename.
"""

from __future__ import annotations

from collections.abc import Iterator

from tamis.core.types import Field, Schema


def schema_changes(before: Schema | None, after: Schema) -> tuple[str, ...]:
    """Return one short phrase for each change; empty if there is none."""
    if before is None:
        return tuple(f"added {shown_path(after, f)} {f.type}" for f in after)
    if not {f.id for f in before} & {f.id for f in after}:
        return (f"replaced all columns by {', '.join(shown_path(after, f) for f in after)}",)
    return tuple(_differences(before, after))


def shown_path(schema: Schema, field: Field) -> str:
    """Return the field's dotted path in backquotes, as history shows it; not SQL."""
    return f"`{schema.path_text(field)}`"


def _differences(before: Schema, after: Schema) -> Iterator[str]:
    for ids, f in before.walk():
        if f.id not in after.by_id and (len(ids) == 1 or ids[-2] in after.by_id):
            yield f"dropped {shown_path(before, f)} {f.type}"
    for ids, f in after.walk():
        old = before.by_id.get(f.id)
        if old is not None:
            yield from _changes(before, after, old, f)
        elif len(ids) == 1 or ids[-2] in before.by_id:
            default = f" default {f.write_default}" if f.write_default is not None else ""
            yield f"added {shown_path(after, f)} {f.type}{'' if f.nullable else ' not null'}{default}"
    if _order(before, after) != _order(after, before):
        yield "changed the order of columns"


def _changes(before: Schema, after: Schema, old: Field, new: Field) -> Iterator[str]:
    if old.name != new.name:
        yield f"renamed {shown_path(before, old)} to `{new.name}`"
    if new.nullable != old.nullable:
        yield f"{shown_path(after, new)} {'may be NULL' if new.nullable else 'must not be NULL'}"
    if not new.type.children and old.type != new.type:
        yield f"widened {shown_path(after, new)} from {old.type} to {new.type}"
    if old.write_default != new.write_default:
        yield f"default of {shown_path(after, new)} " + (
            "dropped" if new.write_default is None else f"set to {new.write_default}"
        )
    if old.comment != new.comment:
        yield f"comment of {shown_path(after, new)} " + (
            "dropped" if new.comment is None else f"set to {new.comment!r}"
        )


def _order(schema: Schema, other: Schema) -> list[int]:
    return [ids[-1] for ids, _ in schema.walk() if ids[-1] in other.by_id]
