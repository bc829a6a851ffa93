"""The demo's queries, each shared by Spark SQL, the embedded scan and plain Spark over Parquet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Query:
    """Columns of flights under a filter; ``join`` is (table, key, columns) that extend the rows."""

    title: str
    where: str
    fields: tuple[str, ...]
    join: tuple[str, str, tuple[str, ...]] | None = None

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that a scan of flights must return, including the join key."""
        return self.fields if self.join is None or self.join[1] in self.fields else (*self.fields, self.join[1])

    def sql(self, source: str) -> str:
        """Return the query over tables whose names start with ``source``."""
        columns = ", ".join(f"f.{name}" for name in self.read)
        if self.join is None:
            return f"SELECT {columns} FROM {source}flights f WHERE {self.where}"
        table, key, others = self.join
        joined = ", ".join(f"t.{name}" for name in others)
        return (
            f"SELECT {columns}, {joined} FROM {source}flights f "
            f"JOIN {source}{table} t ON f.{key} = t.{key} WHERE {self.where}"
        )


QUERIES = (
    Query(
        "A week in June (a temporal filter)",
        "departure >= TIMESTAMP'2013-06-10 00:00:00' AND departure < TIMESTAMP'2013-06-17 00:00:00'",
        ("departure", "carrier", "flight", "origin", "dest", "dep_delay"),
    ),
    Query(
        "Long flights of Independence Day (a range)",
        "departure BETWEEN TIMESTAMP'2013-07-04 04:00:00' AND TIMESTAMP'2013-07-05 03:59:59' AND distance > 2000",
        ("departure", "carrier", "flight", "dest", "distance", "air_time"),
    ),
    Query(
        "What left at three moments (IN)",
        "departure IN (TIMESTAMP'2013-02-14 13:00:00', TIMESTAMP'2013-05-17 12:00:00', TIMESTAMP'2013-10-31 12:30:00')",
        ("departure", "carrier", "flight", "tailnum", "dest"),
    ),
    Query(
        "Late to Honolulu in September (a function of the time)",
        "date_trunc('MONTH', departure) = TIMESTAMP'2013-09-01 00:00:00' AND dest = 'HNL' AND arr_delay > 0",
        ("departure", "carrier", "flight", "dep_delay", "arr_delay"),
    ),
    Query(
        "Christmas Eve's flights with their airlines' names (a join)",
        "departure >= TIMESTAMP'2013-12-24 05:00:00' AND departure < TIMESTAMP'2013-12-25 05:00:00'",
        ("departure", "carrier", "flight", "origin", "dest"),
        ("airlines", "carrier", ("name",)),
    ),
    Query(
        "Cancelled in the blizzard of February, tail numbers N1… (null tests, LIKE)",
        "dep_time IS NULL AND tailnum LIKE 'N1%' AND departure >= TIMESTAMP'2013-02-08 00:00:00' "
        "AND departure < TIMESTAMP'2013-02-11 00:00:00'",
        ("departure", "carrier", "flight", "tailnum", "dest"),
    ),
)
