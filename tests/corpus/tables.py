"""Four tables as people have them, generated the same every time: events of an application, orders of a shop, flights, logs of servers.

Each is a list of parts, in the order in which they were loaded, clustered as its owner would cluster it. ``NOW`` is the instant at which queries about it run.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

UTC = dt.UTC
ROWS = 60
"""Rows per part."""


def _instants(first: dt.datetime, seconds: Any) -> pa.Array:
    start = int(first.replace(tzinfo=UTC).timestamp()) * 1_000_000
    return pa.array(start + (np.asarray(seconds) * 1_000_000).astype(np.int64), pa.int64()).cast(
        pa.timestamp("us", "UTC")
    )


def _pick(rng: np.random.Generator, rows: int, values: list[Any], nulls: float = 0.0) -> list[Any]:
    return [None if rng.random() < nulls else values[i] for i in rng.integers(0, len(values), rows)]


def _money(values: Any) -> pa.Array:
    return pa.array([Decimal(int(v)).scaleb(-2) for v in values], pa.decimal128(12, 2))


def events(day: int, rows: int = ROWS) -> pa.Table:
    """A day of January and February 2026, in order of time. Clients newer than 3.0 appeared on the 20th day; ``referrer`` only since the 25th."""
    rng = np.random.default_rng(1_000 + day)
    seconds = day * 86_400 + np.sort(rng.integers(0, 86_400, rows))
    seq = day * 1_000 + np.arange(rows) * 3 * ROWS // rows
    kinds = ["view", "click", "scroll"] + (["purchase"] if day % 2 else []) + (["refund"] if day == 30 else [])
    kind = _pick(rng, rows, kinds)
    version = [
        f"{2 if day < 20 else 3}.{int(v)}.{int(w)}"
        for v, w in zip(rng.integers(0, 5, rows), rng.integers(0, 9, rows), strict=True)
    ]
    users = rng.integers(1, 100_000, rows)
    amount = [
        int(v) if k in {"purchase", "refund"} else None
        for k, v in zip(kind, rng.integers(100, 90_000, rows), strict=True)
    ]
    duration = np.where(rng.random(rows) < 0.05, np.nan, rng.random(rows) * 30 + day)
    body = [
        json.dumps(
            {
                "user": {"id": int(u), "plan": ["free", "pro"][int(u) % 2]},
                "seq": int(s),
                "app": v,
                "score": round(day + float(r), 3),
            }
            | ({"ref": f"camp-{day}"} if day >= 25 else {})
        )
        for u, s, v, r in zip(users, seq, version, rng.random(rows), strict=True)
    ]
    os_ = _pick(rng, rows, ["ios", "android", "web"] if day < 35 else ["ios", "android", "web", "tv"])
    return pa.table(
        {
            "ts": _instants(dt.datetime(2026, 1, 1), seconds),
            "day": pa.array([dt.date(2026, 1, 1) + dt.timedelta(days=day)] * rows, pa.date32()),
            "seq": pa.array(seq, pa.int64()),
            "user": pa.array(users, pa.int64()),
            "kind": kind,
            "country": _pick(rng, rows, ["DE", "FR", "US", "JP"] if day < 15 else ["DE", "FR", "US", "JP", "BR"]),
            "amount": pa.array([None if a is None else Decimal(a).scaleb(-2) for a in amount], pa.decimal128(12, 2)),
            "duration": pa.array(duration, pa.float64()),
            "ok": pa.array([True] * rows if day % 10 else _pick(rng, rows, [True, False]), pa.bool_()),
            "app": version,
            "device": pa.array([{"os": o, "build": int(day * 10 + b)} for o, b in zip(os_, rng.integers(0, 10, rows), strict=True)], pa.struct([("os", pa.string()), ("build", pa.int32())])),
            "tags": pa.array([[f"t{day // 10}", *(["beta"] if day in (3, 17) else [])] for _ in range(rows)], pa.list_(pa.string())),
            "props": pa.array([[("page", f"/p{int(p)}"), ("ab", "a" if day < 20 else "b")] for p in rng.integers(0, 50, rows)], pa.map_(pa.string(), pa.string())),
            "referrer": pa.array([None] * rows if day < 25 else _pick(rng, rows, ["ads", "mail"], nulls=0.5), pa.string()),
            "body": body,
        }
    )  # fmt: skip


def orders(part: int, rows: int = ROWS) -> pa.Table:
    """Orders in order of their number; old ones are delivered, the newest are open. A part is about nine days of 2025."""
    rng = np.random.default_rng(2_000 + part)
    number = part * 1_000 + np.sort(rng.choice(1_000, rows, replace=rows > 1_000)) + 100_000
    placed = [dt.date(2025, 1, 1) + dt.timedelta(days=int((n - 100_000) * 365 // 40_000)) for n in number]
    shipped = [
        None
        if part >= 36 or rng.random() < 0.05
        else dt.datetime(p.year, p.month, p.day, 12, tzinfo=UTC) + dt.timedelta(days=int(rng.integers(1, 6)))
        for p in placed
    ]
    status = _pick(
        rng,
        rows,
        ["delivered", "returned"] if part < 34 else ["shipped", "delivered"] if part < 37 else ["open", "paid"],
    )
    total = rng.integers(500, 20_000, rows) + (2_000_000 if part == 22 else 0)
    cities = ["Berlin", "Bern", "Paris", "Lyon", "Oslo"]
    return pa.table(
        {
            "id": pa.array(number, pa.int64()),
            "code": [f"ORD-{n:08d}" for n in number],
            "placed": pa.array(placed, pa.date32()),
            "shipped": pa.array(shipped, pa.timestamp("us", "UTC")),
            "customer": pa.array(rng.integers(1, 5_000, rows), pa.int32()),
            "status": status,
            "total": _money(total),
            "discount": pa.array(_pick(rng, rows, [0.05, 0.1, 0.25], nulls=0.6) if part % 4 == 0 else [None] * rows, pa.float64()),
            "priority": pa.array(_pick(rng, rows, [1, 2, 3] if part < 30 else [1, 2, 3, 9]), pa.int8()),
            "weight": pa.array(rng.random(rows).astype(np.float32) * (100 if part == 5 else 10), pa.float32()),
            "quantity": pa.array(rng.integers(1, 8, rows), pa.int16()),
            "address": pa.array([{"city": c, "zip": f"{int(z):05d}"} for c, z in zip(_pick(rng, rows, cities), part * 2_000 + rng.integers(0, 2_000, rows), strict=True)], pa.struct([("city", pa.string()), ("zip", pa.string())])),
            "lines": pa.array([[{"sku": f"sku-{part:02d}-{int(k)}", "qty": int(k) % 5 + 1} for k in rng.integers(0, 20, int(n))] for n in rng.integers(1, 4, rows)], pa.list_(pa.struct([("sku", pa.string()), ("qty", pa.int32())]))),
            "year": pa.array([p.year for p in placed], pa.int32()),
            "month": pa.array([p.month for p in placed], pa.int32()),
            "placed_text": [p.isoformat() for p in placed],
            "note": pa.array(_pick(rng, rows, ["gift", "fragile", "call first"], nulls=0.7) if part % 3 == 0 else [None] * rows, pa.string()),
        }
    )  # fmt: skip


CARRIERS = ["AA", "AF", "BA", "DL", "EK", "JL", "KL", "LH", "QF", "UA"]


def flights(part: int, rows: int = ROWS) -> pa.Table:
    """Flights of March 2026 by carrier, then time: four parts of about eight days each for each of ten carriers. New York changes its clocks on the 8th."""
    rng = np.random.default_rng(3_000 + part)
    carrier, week = CARRIERS[part // 4], part % 4
    seconds = week * 8 * 86_400 + np.sort(rng.integers(0, 7 * 86_400, rows))
    departure = _instants(dt.datetime(2026, 3, 1), seconds)
    distance = rng.integers(200, 3_000, rows) + (9_000 if carrier in {"EK", "QF"} else 0)
    delay = pa.array([None if rng.random() < 0.03 else int(d) for d in rng.normal(5, 15, rows)], pa.int32())
    local = [d.replace(tzinfo=None) - dt.timedelta(hours=5) for d in departure.to_pylist()]
    return pa.table(
        {
            "carrier": [carrier] * rows,
            "number": pa.array(part // 4 * 1_000 + rng.integers(1, 1_000, rows), pa.int32()),
            "departure": departure,
            "arrival": _instants(dt.datetime(2026, 3, 1), seconds + distance * 5),
            "local": pa.array(local, pa.timestamp("us")),
            "origin": _pick(rng, rows, ["JFK", "EWR", "LGA"]),
            "dest": _pick(
                rng, rows, {"EK": ["DXB"], "QF": ["SYD", "MEL"]}.get(carrier, ["LAX", "ORD", "LHR", "CDG", "FRA"])
            ),
            "distance": pa.array(distance, pa.int32()),
            "delay": delay,
            "fare": pa.array([round(float(f), 2) for f in rng.random(rows) * 900 + distance / 10], pa.float64()),
            "tail": [f"N{carrier}{int(n):03d}" for n in rng.integers(0, 400, rows)],
            "cancelled": pa.array(
                [False] * rows if week != 2 else _pick(rng, rows, [False, False, False, True]), pa.bool_()
            ),
            "seats": pa.array(rng.integers(50, 400, rows), pa.int16()),
        }
    )


def logs(hour: int, rows: int = ROWS) -> pa.Table:
    """An hour of server logs at the end of March 2026, when clocks in Europe go forward (the 29th, 01:00 UTC)."""
    rng = np.random.default_rng(4_000 + hour)
    seconds = hour * 3_600 + np.sort(rng.random(rows) * 3_600)
    at = _instants(dt.datetime(2026, 3, 28, 2), seconds)
    start = int(dt.datetime(2026, 3, 28, 2, tzinfo=UTC).timestamp())
    instants = at.to_pylist()
    levels = ["DEBUG", "INFO", "WARN"] + (["ERROR"] if hour % 6 == 0 else []) + (["FATAL"] if hour == 31 else [])
    status = _pick(rng, rows, [200, 200, 200, 301, 404] + ([500, 503] if hour in range(20, 24) else []))
    deploy = f"2026.03.{28 + (hour + 2) // 24}-{hour:04d}"
    return pa.table(
        {
            "at": at,
            "epoch": pa.array((start + seconds).astype(np.int64), pa.int64()),
            "millis": pa.array(((start + seconds) * 1_000).astype(np.int64), pa.int64()),
            "stamp": [i.strftime("%Y-%m-%dT%H:%M:%SZ") for i in instants],
            "date_text": [i.strftime("%Y-%m-%d") for i in instants],
            "hour": pa.array([i.hour for i in instants], pa.int32()),
            "level": _pick(rng, rows, levels),
            "host": [f"web-{int(h):02d}" for h in rng.integers(0, 20, rows)],
            "status": pa.array(status, pa.int32()),
            "bytes": pa.array(rng.integers(0, 2**20, rows) * (2**12 if hour == 7 else 1), pa.int64()),
            "took": pa.array(rng.random(rows) * (20 if hour == 12 else 2), pa.float64()),
            "path": [f"/{p}/{int(n)}" for p, n in zip(_pick(rng, rows, ["api", "img"] if hour < 24 else ["api", "img", "v2/api"]), rng.integers(0, 999, rows), strict=True)],
            "deploy": [deploy] * rows,
            "agent": pa.array(_pick(rng, rows, ["curl/8.1", "Mozilla/5.0", None]), pa.string()),
            "request": [json.dumps({"method": m, "ms": int(1_000 * hour + k), "trace": {"span": f"s{hour:02d}{int(k):03d}"}}) for m, k in zip(_pick(rng, rows, ["GET", "POST"]), rng.integers(0, 999, rows), strict=True)],
        }
    )  # fmt: skip


TABLES: dict[str, tuple[Callable[..., pa.Table], int, list[str], dt.datetime]] = {
    "events": (events, 40, ["ts"], dt.datetime(2026, 2, 10, tzinfo=UTC)),
    "orders": (orders, 40, ["id"], dt.datetime(2026, 1, 1, tzinfo=UTC)),
    "flights": (flights, 40, ["carrier", "departure"], dt.datetime(2026, 4, 2, tzinfo=UTC)),
    "logs": (logs, 48, ["at"], dt.datetime(2026, 3, 30, 2, tzinfo=UTC)),
}
"""By name: what makes a part (of so many rows, if that is said), how many there are, the clustering, and the instant of the queries."""
