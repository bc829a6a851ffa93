"""The demo: Spark appends a year of flights week by week, then six queries are checked row by row.

The reference is plain Spark over Parquet files without pushdown.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import tamis
from tamis.cli import demo_data
from tamis.cli.demo_queries import QUERIES, Query
from tamis.cli.output import output_console, print_note
from tamis.cli.progress import progress_bar
from tamis.cli.session import spark_session
from tamis.engine.scan import Report
from tamis.errors import AlreadyExists
from tamis.world import world

CATALOG, NAMESPACE = "lake", "nyc"
TABLES, PLAIN = f"{CATALOG}.{NAMESPACE}.", "plain_"
_MARK = ".tamis-demo"

_FLIGHTS = """
CREATE TABLE lake.nyc.flights (
    departure TIMESTAMP, carrier STRING, flight BIGINT, tailnum STRING, origin STRING, dest STRING,
    dep_time INT, dep_delay INT, arr_time INT, arr_delay INT, air_time INT, distance INT)
USING tamis CLUSTER BY (departure)"""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one query by three readers: whether the rows are equal, and two reports."""

    query: Query
    rows: int
    same: bool
    seconds: dict[str, float]
    spark: Report | None
    embedded: Report | None

    def as_dict(self) -> dict[str, Any]:
        reports = {"spark": self.spark, "embedded": self.embedded}
        return {
            "title": self.query.title,
            "where": self.query.where,
            "rows": self.rows,
            "same": self.same,
            "seconds": self.seconds,
            "reports": {name: report.as_dict() for name, report in reports.items() if report is not None},
        }


def run_demo(path: str, *, weeks: int = demo_data.WEEKS, show: bool = True) -> dict[str, Any]:
    """Create the demo's tables below ``path`` and check the queries; ``differing`` counts wrong answers.

    Raises ``AlreadyExists`` if ``path`` holds anything but an earlier demo.
    """
    start = world().monotonic()
    lake = _fresh(Path(path))
    print_note("Starting Spark …")
    conf = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.parquet.filterPushdown": "false",
        "tamis.read.native_bytes": "0",
    }
    with tempfile.TemporaryDirectory() as scratch, spark_session(conf) as spark:
        files = Path(scratch)
        flights = demo_data.write(files)
        tamis.attach(spark, CATALOG, lake)
        filling = _fill(spark, files, weeks)
        _plain(spark, files, weeks)
        answers = []
        for query in QUERIES:
            answers.append(_ask(spark, lake, query))
            if show:
                _show(answers[-1])
    outcome = {
        "path": str(lake),
        "flights": flights,
        "commits": weeks,
        "seconds": {"filling": filling, "all": world().monotonic() - start},
        "answers": [answer.as_dict() for answer in answers],
        "differing": sum(not answer.same for answer in answers),
    }
    if show:
        _close(outcome, lake)
    return outcome


def _fresh(lake: Path) -> Path:
    """Return an empty folder for the tables, after removing an earlier demo."""
    if lake.exists() and (not lake.is_dir() or any(lake.iterdir())):
        if not (lake / _MARK).is_file():
            raise AlreadyExists(
                f"{lake} is there and holds no demonstration.",
                code="PATH_EXISTS",
                name=str(lake),
                remedy="Choose another folder by --path.",
            )
        shutil.rmtree(lake)
    lake.mkdir(parents=True, exist_ok=True)
    (lake / _MARK).touch()
    return lake.resolve()


def _fill(spark: Any, files: Path, weeks: int) -> float:
    """Create the dimension tables and append the flights week by week; return the seconds taken."""
    start = world().monotonic()
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE}")
    for name in demo_data.TABLES:
        spark.read.parquet(str(files / f"{name}.parquet")).createOrReplaceTempView("source")
        spark.sql(f"CREATE TABLE {TABLES}{name} USING tamis AS SELECT * FROM source")
    spark.sql(_FLIGHTS)
    source = spark.read.parquet(str(files / "flights.parquet"))
    with progress_bar("Appending the flights of 2013 by Spark, week by week", weeks) as advance:
        for week in range(weeks):
            source.where(f"week = {week}").drop("week").writeTo(f"{TABLES}flights").append()
            advance(1, f"week {week + 1} of {weeks}")
    return world().monotonic() - start


def _plain(spark: Any, files: Path, weeks: int) -> None:
    """Create views of the same rows over plain Parquet files: the reference."""
    for name in demo_data.TABLES:
        spark.read.parquet(str(files / f"{name}.parquet")).createOrReplaceTempView(PLAIN + name)
    spark.read.parquet(str(files / "flights.parquet")).where(f"week < {weeks}").drop("week").createOrReplaceTempView(
        f"{PLAIN}flights"
    )


def _ask(spark: Any, lake: Path, query: Query) -> Answer:
    """Run one query by Spark SQL, the embedded scan and plain Spark."""
    seconds: dict[str, float] = {}
    expected = _timed(seconds, "plain", lambda: spark.sql(query.sql(PLAIN)).toArrow())
    by_spark = _timed(seconds, "spark", lambda: spark.sql(query.sql(TABLES)).toArrow())
    report = next((r for r in tamis.reports(5) if "flights" in r.table), None)
    table = tamis.open(lake / NAMESPACE / "flights")
    scan = table.scan(query.where, query.read)
    by_scan = _timed(seconds, "embedded", scan.to_arrow)
    own = scan.report
    if query.join is not None:
        other, key, columns = query.join
        by_scan = by_scan.join(
            tamis.open(lake / NAMESPACE / other).scan(selected_fields=(key, *columns)).to_arrow(),
            key,
            join_type="inner",
        )
    same = (
        _rows(expected) == _rows(by_spark.select(expected.column_names)) == _rows(by_scan.select(expected.column_names))
    )
    return Answer(query, len(expected), same, seconds, report, own)


def _timed(seconds: dict[str, float], name: str, work: Any) -> Any:
    start = world().monotonic()
    result = work()
    seconds[name] = round(world().monotonic() - start, 3)
    return result


def _rows(table: pa.Table) -> list[tuple[str, ...]]:
    """Return the rows in a canonical order and form, for comparison."""
    return sorted(tuple(map(repr, row.values())) for row in table.to_pylist())


def _show(answer: Answer) -> None:
    out = output_console()
    out.print()
    out.rule(answer.query.title, align="left")
    out.print(answer.query.where, markup=False, style="cyan")
    if answer.spark is not None:
        out.print(answer.spark)
    times = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in answer.seconds.items())
    verdict = "the same from plain Parquet, Spark SQL and the embedded scan" if answer.same else "NOT THE SAME"
    out.print(f"{answer.rows:,} rows, {verdict} ({times}).", style="green" if answer.same else "bold red")


def _close(outcome: dict[str, Any], lake: Path) -> None:
    table = lake / NAMESPACE / "flights"
    answers = outcome["answers"]
    read = sum(
        a["reports"]["spark"]["bytes"]["leader"] + a["reports"]["spark"]["bytes"]["follower"]
        for a in answers
        if "spark" in a["reports"]
    )
    total = sum(a["reports"]["spark"]["bytes"]["table"] for a in answers if "spark" in a["reports"])
    out = output_console()
    out.print()
    out.rule("Done", align="left")
    out.print(
        f"{outcome['flights']:,} flights in {outcome['commits']} commits; "
        f"{len(answers) - outcome['differing']} of {len(answers)} answers right; "
        f"{100 * read / max(total, 1):.1f}% of the bytes read; {outcome['seconds']['all']:.0f} s in all."
    )
    out.print("Try next:")
    out.print(
        f"  tamis explain {table} --where \"departure >= '2013-12-01' AND carrier = 'UA'\"",
        markup=False,
        soft_wrap=True,
    )
    out.print(
        f"  tamis query {table} --where \"dest = 'HNL' AND departure < '2013-01-03'\" "
        "--select departure,carrier,flight",
        markup=False,
        soft_wrap=True,
    )
    out.print(f"  tamis history {table} --limit 5", markup=False, soft_wrap=True)
