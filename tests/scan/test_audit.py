"""The audit sees every kind of wrong proof: each is planted once, and must be found, and the answer must be right all the same."""

from __future__ import annotations

import gc
import importlib
import logging
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.pruning import Decision
from tamis.core.stats.json_paths.path_evidence import PathTable
from tamis.core.types import Schema
from tamis.engine.part_reader import ReadCounters, ReadSpec, lazy_reader
from tamis.engine.scan import funnel, index_stage, metadata_aggregates, skip_audit
from tamis.engine.scan.limit_pruning import RankedParts
from tamis.engine.scan.skip_audit import Proof, audit_sample, read_audited
from tamis.engine.secondary_index import choose_candidates
from tamis.errors import CorruptData, InvalidInput
from tamis.world import use
from tests.scan.planted_proofs import Production, all_match, planted, skip_all

decide_module = importlib.import_module("tamis.core.pruning.decide")  # the package has a function of that name
ROWS = 20_000  # two blocks
ALWAYS = {"tamis.audit.percent": 100, "tamis.read.lazy": "on"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    """Parts of one or two blocks, n rising through all; two parts in the first load."""
    made = tamis.create(
        tmp_path_factory.mktemp("audit") / "t", cluster_by=["n"], properties={"tamis.write.part_bytes": "40k"}
    )
    for first in (0, 2 * ROWS, 3 * ROWS):
        rows = 2 * ROWS if first == 0 else ROWS
        n = np.arange(first, first + rows)
        noise = np.random.default_rng(first).integers(0, 2**14, ROWS)
        made.append(
            pa.concat_tables(
                pa.table({"n": half, "even": half // 2 * 2, "pad": ["x" * 800] * ROWS, "noise": noise})
                for half in np.split(n, rows // ROWS)
            )
        )
    return made


def whole_segments(decision: Decision) -> None:
    if len(decision.none) == 3:  # segments, not parts
        skip_all(decision)


PLANTS = {
    "parts by statistics": (funnel, skip_all, "n = 25000", "it was skipped, but 1 rows match"),
    "segments by statistics": (funnel, whole_segments, "n = 25000", "it was skipped, but 1 rows match"),
    "blocks by statistics": (lazy_reader, skip_all, "n = 25000", "it was read in part, but 1 rows match, with skipping 0 rows match"),
    "parts said to match wholly": (funnel, all_match, "n % 1000 = 1", "it was said to match wholly, but 20 rows match, with skipping 20000 rows match"),
    "blocks said to match wholly": (lazy_reader, all_match, "n % 1000 = 1", "it was read in part, but 20 rows match, with skipping 20000 rows match"),
}  # fmt: skip
RIGHT = {"n = 25000": [25_000], "n % 1000 = 1": list(range(1, 4 * ROWS, 1_000))}


@pytest.mark.push_cases(2)
@pytest.mark.parametrize("kind", PLANTS)
def test_a_wrong_proof_is_found_and_the_rows_are_right(
    table: tamis.Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    module, change, text, problem = PLANTS[kind]
    assert len(table.scan().plan().parts) > 3
    planted(monkeypatch, module, change)
    if kind == "segments by statistics":
        monkeypatch.setattr(funnel, "FEW_PARTS", 0)
    assert table.scan(text, ["n"], options={"tamis.read.lazy": "on"}).to_arrow()["n"].to_pylist() != RIGHT[text], (
        "the plant shows"
    )
    with use(Production()), caplog.at_level(logging.ERROR, "tamis"):
        scan = table.scan(text, ["n"], options=ALWAYS)
        assert scan.to_arrow()["n"].to_pylist() == RIGHT[text]
        report = scan.report
        assert scan.count() == len(RIGHT[text])
    assert problem in {v.problem for v in report.violations}
    assert "AUDIT" in caplog.text
    assert "AUDIT" in repr(report)
    with pytest.raises(CorruptData, match="AUDIT_FAILED"):
        table.scan(text, ["n"], options=ALWAYS).to_arrow()
    with pytest.raises(CorruptData, match="AUDIT_FAILED"):
        table.scan(text, ["n"], options=ALWAYS).count()


@pytest.mark.merge
def test_two_wrong_proofs_at_once_are_one_error_and_no_noise(
    table: tamis.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second part is given up while its rows come: its error has nobody to go to, and is not thrown at the collector. With a limit it is raised all the same."""
    noise: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", noise.append)
    planted(monkeypatch, funnel, skip_all)
    for _ in range(5):
        scan = table.scan("n >= 0", ["n"], options=ALWAYS)
        with pytest.raises(CorruptData, match="AUDIT_FAILED"):
            scan.to_arrow()
        gc.collect()
        assert scan.report.violations
        limited = table.scan("n >= 0", ["n"], limit=10, options=ALWAYS)
        with pytest.raises(CorruptData, match="AUDIT_FAILED"):
            limited.to_arrow()
    one = tamis.create(tmp_path / "one")
    one.append(pa.table({"n": np.arange(ROWS)}))
    for held in (table, one):
        stream = iter(held.scan("n >= 0", ["n"], options=ALWAYS).to_batches())
        next(stream)
        del stream
        gc.collect()
    assert noise == []


def test_what_an_index_skips_is_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Planted: the index says that a part has no candidates, or forgets one of its rows."""
    table = tamis.create(tmp_path / "t", pa.schema([("key", pa.int64()), ("n", pa.int64())]))
    for part in range(3):
        table.append(
            pa.table(
                {"key": np.random.default_rng(part).permutation(3_000) * 3 + part, "n": np.arange(3_000) + part * 3_000}
            )
        )
    table.create_index("by_key", ["key"])
    right = table.scan("key IN (7, 8)", ["n"], options={"tamis.index.use": "off"}).to_arrow()["n"].to_pylist()
    scan = table.scan("key IN (7, 8)", ["n"])
    assert scan.to_arrow()["n"].to_pylist() == right
    assert scan.report.parts["skipped_index"] == 1, "the index skips"
    real = choose_candidates

    def plant(change: Any) -> None:
        def wrong(*args: Any, **more: Any) -> Any:
            found = real(*args, **more)
            return replace(found, candidates=replace(found.candidates, rows=change(found.candidates.rows)))

        monkeypatch.setattr(index_stage, "choose_candidates", wrong)

    for change in (lambda _: {}, lambda rows: dict(list(rows.items())[1:])):
        plant(change)
        assert table.scan("key IN (7, 8)", ["n"]).to_arrow()["n"].to_pylist() != right, "the plant shows"
        with use(Production()), caplog.at_level(logging.ERROR, "tamis"):
            scan = table.scan("key IN (7, 8)", ["n"], options=ALWAYS)
            assert scan.to_arrow()["n"].to_pylist() == right
        assert scan.report.violations
    with pytest.raises(CorruptData, match="AUDIT_FAILED"):
        table.scan("key IN (7, 8)", ["n"], options=ALWAYS).to_arrow()


@pytest.fixture(scope="module")
def sorted_documents(tmp_path_factory: pytest.TempPathFactory) -> tamis.Table:
    """Three parts clustered by (a, b), with documents."""
    made = tamis.create(tmp_path_factory.mktemp("audit") / "d", cluster_by=["a", "b"])
    for part in range(3):
        rows = [(a, b) for a in range(3) for b in range(part * 10, part * 10 + 100)]
        made.append(
            pa.table(
                {
                    "a": [a for a, _ in rows],
                    "b": [b for _, b in rows],
                    "s": [f'{{"k": {part * 1_000 + b}}}' for _, b in rows],
                }
            )
        )
    return made


def nowhere(evidence: Any) -> Any:
    """Documents whose every number is 0."""
    if evidence is None:
        return None
    zero = pa.array([0] * len(evidence.known), pa.int64())
    return replace(evidence, long_lo=zero, long_hi=zero)


def test_what_clustering_tuples_and_paths_of_documents_skip_is_audited(
    sorted_documents: tamis.Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, outside = PathTable.at, decide_module.excluded_by_order
    for text, module, name, wrong, count in (
        ("a = 1 AND b = 25", decide_module, "excluded_by_order", lambda run, keys: np.ones_like(outside(run, keys)), 3),
        (
            "try_cast(get_json_object(s, '$.k') AS INT) = 1050",
            PathTable,
            "at",
            lambda *args, **given: nowhere(real(*args, **given)),
            3,
        ),
    ):
        assert sorted_documents.scan(text).count() == count
        with monkeypatch.context() as planting:
            planting.setattr(module, name, wrong)
            assert sorted_documents.scan(text).count() == 0, "the plant shows"
            with use(Production()), caplog.at_level(logging.ERROR, "tamis"):
                scan = sorted_documents.scan(text, options=ALWAYS)
                assert len(scan.to_arrow()) == count
                assert scan.report.violations, text
            with pytest.raises(CorruptData, match="AUDIT_FAILED"):
                sorted_documents.scan(text, options=ALWAYS).to_arrow()


def test_what_an_audit_makes_right_without_a_word(
    sorted_documents: tamis.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds of ORDER BY … LIMIT, and aggregates that metadata answers: parts of the sample are read instead, and nothing is compared. Without a filter nothing is audited."""
    wrong = {
        "topk": (
            RankedParts,
            "cannot_qualify",
            lambda self, bound, places=None: np.ones(len(self._parts if places is None else places), np.bool_),
        ),
        "answers": (
            metadata_aggregates,
            "_share",
            lambda measure, evidence, live, intact: (pa.array([-1] * len(live)), np.ones(len(live), np.bool_)),
        ),
    }
    asked = {
        "topk": lambda text, options: (
            sorted_documents.scan(text, ["b"], order_by="b DESC", limit=2, options=options).to_arrow()["b"].to_pylist()
        ),
        "answers": lambda text, options: (
            sorted_documents.scan(text, options=options).aggregate("max(b)")["max(b)"].to_pylist()
        ),
    }
    for kind, (module, name, change) in wrong.items():
        expected = asked[kind]("b >= 0", {})
        with monkeypatch.context() as planting:
            planting.setattr(module, name, change)
            assert asked[kind]("b >= 0", {}) != expected, f"{kind}: the plant shows"
            assert asked[kind]("b >= 0", ALWAYS) == expected, kind
            assert asked[kind](None, ALWAYS) != expected, f"{kind}: without a filter"


@pytest.mark.parametrize("module", [funnel, lazy_reader])
def test_a_hidden_error_is_found_and_raised(
    table: tamis.Table, monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> None:
    text = "1 / (n - 25000) < 0 AND n > 30000"
    with pytest.raises(InvalidInput, match="DIVIDE"):
        table.scan(text).to_arrow()
    planted(monkeypatch, module, skip_all)
    assert table.scan(text).count() == 0, "the plant shows"
    with use(Production()):
        scan = table.scan(text, options=ALWAYS)
        with pytest.raises(InvalidInput, match="DIVIDE"):
            scan.to_arrow()
    assert any("fails" in v.problem for v in scan.report.violations)
    with pytest.raises(CorruptData, match="AUDIT_FAILED"):
        table.scan(text, options=ALWAYS).to_arrow()


@pytest.mark.push_cases(2)
@pytest.mark.parametrize(
    "text", ["n = 25000", "n < 30000 AND even % 3 = 0", "n >= 10", "n < 0", "n + 0 > 5", "1 / n > 0 AND n > 5"]
)
def test_right_proofs_pass(table: tamis.Table, text: str) -> None:
    """``strict`` here: a violation would raise. What is checked is in the report, and the rows are the same."""
    scan, plain = table.scan(text, options=ALWAYS), table.scan(text)
    try:
        expected = plain.to_arrow()
    except InvalidInput:
        with pytest.raises(InvalidInput, match="DIVIDE"):
            scan.to_arrow()
        return
    assert scan.to_arrow().equals(expected)
    assert (scan.count(), scan.report.violations) == (len(expected), [])
    report = scan.report
    assert report.parts.audited == sum(v for k, v in report.parts.items() if k.startswith("skipped"))
    assert report.blocks.total == sum(v for k, v in report.blocks.items() if k != "total"), (
        "those of audited parts are no part of it"
    )


def test_a_skipped_part_that_cannot_be_read_costs_the_query_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = tamis.create(tmp_path / "t")
    for n in range(3):
        made.append(pa.table({"n": [n]}))
    gone = made.scan("n = 0").plan().parts[0]
    (tmp_path / "t" / gone.path).unlink()
    with caplog.at_level(logging.WARNING, "tamis"):
        assert made.scan("n = 2", options=ALWAYS).to_arrow()["n"].to_pylist() == [2]
    assert gone.part_id in caplog.text
    with pytest.raises(tamis.TamisError):
        made.scan("n >= 0", options=ALWAYS).to_arrow()


def test_a_filterless_scan_has_nothing_to_check(table: tamis.Table) -> None:
    plan = table.scan(options=ALWAYS).plan()
    assert (len(plan.audit), plan.proofs) == (0, {})


def test_filtering_off_is_off_for_blocks_too(table: tamis.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way back from a wrong rule: one switch turns all of its uses off."""
    for module in (funnel, lazy_reader):
        planted(monkeypatch, module, skip_all)
    assert table.scan("n = 25000", options={"tamis.stats.filter": "off"}).count() == 1


@given(st.lists(st.integers(1, 1_000), max_size=40), st.floats(0, 100), st.integers(0, 5_000))
def test_the_sample_is_the_same_each_time_grows_with_the_percentage_and_fits(
    sizes: list[int], percent: float, budget: int
) -> None:
    ids, array = [f"part-{i}" for i in range(len(sizes))], np.array(sizes, dtype=np.int64)
    chosen = audit_sample(ids, array, percent, budget)
    assert int(array[chosen].sum()) <= budget
    assert (chosen == audit_sample(ids, array, percent, budget)).all()
    unbounded = [audit_sample(ids, array, share, 10**9) for share in (percent / 2, percent, 100)]
    assert (unbounded[0] <= unbounded[1]).all()
    assert unbounded[2].all()


@pytest.mark.parametrize("stopped", [False, True], ids=["read to the end", "stopped"])
@pytest.mark.parametrize("certain", [0, 2])
def test_rows_that_are_kept_for_spark_disprove_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certain: int, stopped: bool
) -> None:
    """A reader keeps rows that it cannot judge; only those that match for certain are a violation."""
    table = tamis.create(tmp_path / "t", pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": range(5)}))
    ref = next(iter(table.scan().plan().parts))

    def kept(_: Any, spec: ReadSpec, __: Any) -> Any:
        yield pa.record_batch({"n": pa.array(range(5 if spec.errors == "keep" else certain))})

    monkeypatch.setattr(skip_audit, "read_part", kept)
    spec = ReadSpec(url=str(tmp_path / "t"), schema=Schema(()), part_schemas={}, errors="keep")
    found: list[str] = []
    rows: Any = read_audited(ref, Proof.NONE, spec, ReadCounters(), lambda _, problem: found.append(problem))
    assert len(next(rows)) == 5
    if stopped:
        rows.close()
    else:
        assert list(rows) == []
    assert found == (["it was skipped, but 2 rows match"] if certain else [])
