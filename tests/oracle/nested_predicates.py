"""Predicates about values within structs, arrays and maps."""

from __future__ import annotations

from random import Random  # noqa: TID251  # seeded by the caller

from tests.oracle.kinds import some_literal


def of_struct(rng: Random, x: str, op: str, n: int) -> list[str]:
    return [
        f"{x}.u {op} {n}",
        f"{x}.v {op} {some_literal(rng, 'string')}",
        f"{x} IS NULL",
        f"{x}.u IS NOT NULL",
        f"{x}.v LIKE 'k0%'",
    ]


def of_array(rng: Random, x: str, op: str, n: int) -> list[str]:
    return [
        f"array_contains({x}, {n})",
        f"size({x}) {op} {n % 3}",
        f"get({x}, {rng.randrange(4)}) {op} {n}",
        f"{x}[{rng.randrange(2)}] {op} {n}",
        f"element_at({x}, {rng.choice((1, 1, 2, -1))}) {op} {n}",
        f"try_element_at({x}, {rng.choice((1, 2, 3, -1))}) {op} {n}",
        f"get({x}, {rng.randrange(3)}) IS {rng.choice(('', 'NOT '))}NULL",
        f"{x} IS NULL",
        f"exists({x}, e -> e > {n})",
    ]


def of_map(rng: Random, x: str, op: str, n: int) -> list[str]:
    return [
        f"try_element_at({x}, 'k{rng.randrange(5)}') {op} {n}",
        f"{x}['{rng.choice(('k0', 'k3', 'n', 'none', 'a'))}'] {op} {n}",
        f"element_at({x}, '{rng.choice(('k2', 'n'))}') {op} {n}",
        f"{x}['{rng.choice(('k1', 'n', 'none'))}'] IS {rng.choice(('', 'NOT '))}NULL",
        f"size({x}) {op} 1",
        f"map_contains_key({x}, 'k2')",
        f"{x} IS NULL",
    ]


def of_orders(rng: Random, x: str, op: str, n: int) -> list[str]:
    """Of the fields of an array's structs, at any depth."""
    code = f"'k{n % 20:03}'"
    return [
        f"array_contains({x}.items.sku, {n})",
        f"array_contains({x}.items.p.code, {code})",
        f"{x}.items.sku[0] {op} {n}",
        f"get({x}.items.p.code, {n % 3}) {op} {code}",
        f"get({x}.items, {n % 2}).p.code = {code}",
        f"{x}.items[0].sku {op} {n}",
        f"size({x}.items.sku) {op} {n % 5}",
        f"{x}.items.p IS {rng.choice(('', 'NOT '))}NULL",
        f"exists({x}.items, e -> e.sku {op} {n})",
        f"exists({x}.items.p.code, e -> e = {code})",
    ]


def of_keyed(rng: Random, x: str, op: str, n: int) -> list[str]:
    """Of the fields of a map's structs."""
    key = rng.choice(("k0", "k2", "n", "m", "none", "a"))
    return [
        f"{x}['{key}'].v {op} {n}",
        f"{x}.{key}.v {op} {n}",
        f"element_at({x}, '{key}').v IS {rng.choice(('', 'NOT '))}NULL",
        f"array_contains({x}.{key}.l, {n})",
        f"get(try_element_at({x}, '{key}').l, 1) {op} {n}",
        f"map_contains_key({x}, '{key}')",
        f"size({x}) {op} {n % 4}",
        f"{x} IS NULL",
    ]


NESTED_PREDICATES = {
    "struct": of_struct,
    "array": of_array,
    "map": of_map,
    "orders": of_orders,
    "keyed": of_keyed,
}
"""By the kind of the column ``x``: predicates, of which the caller takes one."""
