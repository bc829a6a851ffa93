"""Wrong decisions, each a small change of one place in the source. The oracle must see them; ``mutant_run`` plants them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Mutant:
    """In ``src/tamis/<path>``, ``old``, which is there once, becomes ``new``."""

    name: str
    path: str
    old: str
    new: str
    spark: bool = False
    """Only queries through Spark can tell."""

    @property
    def libraries(self) -> bool:
        """Whether only queries of other libraries can tell."""
        return self.path.startswith("table/")


def _mutants(path: str, *changes: tuple[str, str, str], spark: bool = False) -> list[Mutant]:
    return [Mutant(name, path, old, new, spark or path.startswith("spark/")) for name, old, new in changes]


MUTANTS: tuple[Mutant, ...] = (
    *_mutants(
        "engine/scan/funnel.py",
        ("every part of a filtered scan matches", "np.full(len(parts), not conjuncts)", "np.full(len(parts), True)"),
        ("segments that may match are skipped", "skip, complete = decision.none,", "skip, complete = ~decision.all,"),
        ("parts not proved to match are skipped", "        keep=~none,", "        keep=every,"),
    ),
    *_mutants(
        "engine/scan/limit_pruning.py",
        ("a limit trusts parts that match in part", "np.where(parts.all_match, parts.live_rows, 0)", "parts.live_rows"),
        ("a limit counts deleted rows", "np.where(parts.all_match, parts.live_rows, 0)", 'np.where(parts.all_match, parts.column("rows"), 0)'),
        ("a limit reads one part too few", "np.searchsorted(np.cumsum(rows), limit)) + 1", "np.searchsorted(np.cumsum(rows), limit))"),
        ("an order trusts its best bound", "worst = e.lo if by.descending else e.hi", "worst = e.hi if by.descending else e.lo"),
        ("an order forgets NULLs beyond the bounds", "        rows = pc.subtract(rows, e.nulls)\n", "        rows = pc.subtract(rows, 0)\n"),
        ("an order counts parts that match in part", "self._parts.all_match & np.asarray(worst.is_valid())", "np.asarray(worst.is_valid())"),
    ),
    *_mutants(
        "engine/scan/top_k.py",
        ("a search stops before it has enough rows", "if len(found) < self._limit:", "if len(found) < 1:"),
        ("a search bounds by its first row", "[self._limit - 1] for at in", "[0] for at in"),
        ("a search drops rows when it cuts", "held = [self._best(held)]", "held = [self._best(held[:-1])]"),
        ("a search forgets the filter", "tested = () if ref.all_match else spec.conjuncts", "tested = () if ref.all_match else spec.conjuncts[1:]"),
    ),
    *_mutants(
        "engine/scan/partial_aggregates.py",
        ("count counts NULLs", 'return values.is_valid().cast(pa.int64()) if measure.function == "count" else values', 'return pa.repeat(pa.scalar(1, pa.int64()), len(batch)) if measure.function == "count" else values'),
        ("the smallest value may be NaN", '    if function == "min":\n        here = pc.and_(here, values.is_null())\n', ""),
        ("partial groups are lost", "            held = [fold_partials(aggregation, held)]", "            held = [fold_partials(aggregation, held[1:])]"),
    ),
    *_mutants(
        "engine/scan/metadata_aggregates.py",
        ("deleted rows count for bounds", "share.all_null | share.constant | (share.low_exact & intact)", "share.all_null | share.constant | share.low_exact"),
        ("inexact bounds answer", "share.all_null | share.constant | (share.high_exact & intact)", "share.all_null | share.constant | intact"),
        ("parts that match in part are answered", "known = parts.all_match.copy()", "known = np.ones(len(parts), dtype=np.bool_)"),
        ("NULLs are counted", "np.where(share.all_null, 0, live - share.nulls)", "np.where(share.all_null, 0, live)"),
        ("groups need no constant", "known &= share.constant | share.all_null", "known &= share.low_exact | share.all_null"),
    ),
    *_mutants(
        "core/pruning/bound_comparison.py",
        ("equal bounds are no match of <=", 'if op == "le":\n        less, equal_or_more = ~surely_below(b.hi, a.lo), ~at_most(a.hi, b.lo)', 'if op == "lt_":\n        less, equal_or_more = ~surely_below(b.hi, a.lo), ~at_most(a.hi, b.lo)'),
        ("NaN is less than numbers", "true = (both & less) | (a.value & b.nan)", "true = both & less"),
        ("NaN compares as false", "false = (both & equal_or_more) | (a.nan & b.value)", "false = both & equal_or_more"),
        ("overlap looks at one side", "overlap = ~(surely_below(a.hi, b.lo) | surely_below(b.hi, a.lo))", "overlap = ~(surely_below(a.hi, b.lo) | at_most(b.hi, a.lo))"),
        ("ranges are one value", 'surely_true(compare_values("eq", a.lo, a.hi))\n        & surely_true', "surely_true"),
        ("<=> forgets NULL on both sides", "plain.true | (a.null & b.null),", "plain.true,"),
        ("<=> with NULL is never false", "plain.false | (a.null & something_b) | (something_a & b.null),", "plain.false,"),
        ("IN looks behind its last value", 'last = _rank(among, a.lo, "left", 0), _rank(among, a.hi, "right", count)', 'last = _rank(among, a.lo, "right", 0), _rank(among, a.hi, "right", count)'),
        ("NOT IN forgets NULL in the list", "nothing if has_null else missed, a.null | (missed if has_null else nothing)", "missed, a.null"),
        ("a gap in the list is no gap", "(_steps(stored_numbers(a.lo), stored_numbers(a.hi)) < (last - first).astype(np.uint64))", "(_steps(stored_numbers(a.lo), stored_numbers(a.hi)) <= (last - first).astype(np.uint64))"),
    ),
    *_mutants(
        "engine/part_reader/read_columns.py",
        ("CHAR values are read as stored", "padded_array(convert_array(array, field, names), field.type)", "convert_array(array, field, names)"),
    ),
    *_mutants(
        "storage/files/parquet/foreign_pages.py",
        ("pages of adopted files begin a row late", "found.rows[a:z] + begin for", "found.rows[a:z] + (begin + 1) for"),
    ),
    *_mutants(
        "storage/files/parquet/page_excerpt.py",
        ("an excerpt counts no pages before a row's own", "(np.cumsum(rows) - rows)", "0 * rows"),
    ),
    *_mutants(
        "storage/files/parquet/dictionary_texts.py",
        ("texts of a later chunk are those of its first row", "chunks], taken[a:z] - first)", "chunks], 0 * taken[a:z])"),
    ),
    *_mutants(
        "core/stats/table_evidence.py",
        ("bounds of CHAR values are not padded", "replace(e, hi=padded_high(e.hi, length),", "replace(e,"),
    ),
    *_mutants(
        "core/pruning/decide.py",
        ("NULL counts as a match", "all_ = all_ & ~(truth.false | truth.null | truth.fail)", "all_ = all_ & ~(truth.false | truth.fail)"),
        ("one conjunct that holds is enough", "all_ = all_ & ~(truth.false", "all_ = ~(truth.false"),
        ("one case decides for all", "nowhere = np.logical_and.reduceat(found.none, starts)", "nowhere = np.logical_or.reduceat(found.none, starts)"),
        ("one case that matches is enough", "np.logical_and.reduceat(found.all, starts)", "np.logical_or.reduceat(found.all, starts)"),
    ),
    *_mutants(
        "core/pruning/logic_rules.py",
        ("AND is NULL less often", "(out.null & (now.true | now.null)) | (out.true & now.null),", "out.null & now.null,"),
        ("IS NULL is the other way round", 'return Truth(null, there, NO, a.fail) if call.function == "is_null"', 'return Truth(null, there, NO, a.fail) if call.function == "is_not_null"'),
        ("NOT keeps what is true", "return Truth(t.false, t.true, t.null, t.fail)", "return Truth(t.false, t.true & ~t.null, t.null, t.fail)"),
    ),
    *_mutants(
        "core/pruning/json_rules.py",
        ("a text in a document is an object", "known & found.known & ~found.string & ~found.other", "known & found.known"),
    ),
    *_mutants(
        "core/stats/json_paths/text_paths.py",
        ("elements of lists stand one position later", "yield position, elements", "yield position + 1, elements"),
    ),
    *_mutants(
        "core/stats/columns/tally.py",
        ("the last batch widens no bound", 'self._lows, self._highs = [self._best(self._lows, "min")], [self._best(self._highs, "max")]', "self._lows, self._highs = [self._lows[0]], [self._highs[0]]"),
        ("the file's first block bounds the part", 'self._highs.append(self._pick(highs, "max"))', "self._highs.append(highs[0])"),
        ("NULLs are not counted", "        self.nulls += array.null_count\n        if self._counted_nans", "        self.nulls += 0\n        if self._counted_nans"),
        ("NaNs are not counted", "        self.nans += nans\n", "        self.nans += 0\n"),
        ("the highs are the lows", 'cut_high(self._best(highs, "max"))', 'cut_high(self._best(highs, "min"))'),
    ),
    *_mutants(
        "core/stats/columns/placed_statistics.py",
        ("a position is one too far", "found[str(position)] = starts + position", "found[str(position + 1)] = starts + position"),
        ("longer arrays do not count", "self._longer = self._longer or bool(len(sizes) and sizes.max() > POSITIONS)", "self._longer = False"),
    ),
    *_mutants(
        "core/stats/columns/map_keys.py",
        ("keys without room do not count", "self.listed = self.listed and len(fit) == len(fresh)", "self.listed = True"),
    ),
    *_mutants(
        "core/stats/place_tables.py",
        ("a place that is not listed is nowhere", "absent = self._listed & (times == 0)", "absent = places.known & (times == 0)"),
    ),
    *_mutants(
        "core/stats/columns/value_sets.py",
        ("a set goes on after it was given up", "        if isinstance(self._state, GaveUp) or not len(array):", "        if isinstance(self._state, GaveUp):\n            self._state = None\n        if not len(array):"),
        ("a sample that gives up keeps the set", "            self._state = GAVE_UP\n            return", "            return"),
        ("the union leaves an unknown set out", "if pc.any(pc.and_(sets.is_null(), pc.invert(pc.fill_null(empty, False)))).as_py():", "if sets.null_count == len(sets):"),
        ("a set holds the last batch alone", "_listed(found if self._state is None else pc.unique(pa.concat_arrays([self._state, found])))", "_listed(found)"),
    ),
    *_mutants(
        "core/stats/columns/bounds.py",
        ("a cut upper bound is not raised", "next_text(text[:LIMIT]) if upper else text[:LIMIT]", "text[:LIMIT]"),
        ("a cut binary is not raised", "next_bytes(data[:LIMIT]) if upper else data[:LIMIT]", "data[:LIMIT]"),
    ),
    *_mutants(
        "core/stats/statistics_union.py",
        ("a segment's bound ignores unknown ones", "if pc.any(unknown).as_py() or not len(bound):", "if not len(bound):"),
        ("a segment's lower bound is its highest", '_outermost(bounds.lo, bounds.lo_exact, empty, "min")', '_outermost(bounds.lo, bounds.lo_exact, empty, "max")'),
    ),
    *_mutants(
        "core/stats/columns/page_statistics.py",
        ("a page forgets its last row", "[column.slice(start, rows)]", "[column.slice(start, max(min(rows, len(column) - start) - 1, 1))]"),
        ("a page's high is its low", '("hi", np.maximum)', '("hi", np.minimum)'),
    ),
    *_mutants(
        "core/stats/table_evidence.py",
        ("an added column's default is forgotten", "        if top.initial_default is None:\n", "        if True:\n"),
        ("an added column has its default everywhere", "stored = _where(self._written_under(schema), self._absent(path, schema), stored)", "stored = self._absent(path, schema)"),
    ),
    *_mutants(
        "engine/part_reader/lazy_reader.py",
        ("deleted rows of whole blocks come back", "self._read_pieces(ids, chunk, self._live.ordinals_to_visit(chunk), leaders=False)", "self._read_pieces(ids, chunk, None, leaders=False)"),
        ("followers start anew with each piece", "            done += size\n", "            done += 0\n"),
        ("waiting survivors are dropped", "                yield from self._fetch_followers(waiting, starts)\n                waiting, size = [], 0", "                waiting, size = [], 0"),
        ("sure blocks are those that may match", "return decision.none, decision.all & ~decision.none", "return decision.none, ~decision.none"),
    ),
    *_mutants(
        "engine/part_reader/lazy_reader.py",
        ("a row that fails is dropped before Spark sees it", "            keep |= failed\n", "            keep &= ~failed\n"),
        spark=True,
    ),
    *_mutants(
        "engine/part_reader/live_rows.py",
        ("deleted rows are candidates", "np.setdiff1d(chosen, self._deleted, assume_unique=True) if len(self._deleted) else chosen", "chosen"),
        ("a block that lost one row is empty", "(lost > 0) & (lost == rows)", "(lost > 0)"),
        ("candidates lose their last", "self._chosen[cuts[b] : cuts[b + 1]]", "self._chosen[cuts[b] : cuts[b + 1] - 1]"),
        ("a metadata count forgets deletes", "        live = ref.live_rows\n", "        live = ref.rows\n"),
    ),
    *_mutants(
        "core/expr/short_circuit.py",
        ("values of undecided rows land on others", "    spread[where] = is_true(values)\n", "    spread[: len(where)] = is_true(values)\n"),
        ("the last conjunct is not run", "for step, at in enumerate(order, 1):", "for step, at in enumerate(order[: max(len(order) - 1, 1)], 1):"),
        ("legs that can raise change places", "        fixed = can_fail(leg)\n", "        fixed = False\n"),
    ),
    *_mutants(
        "engine/secondary_index/candidate_rows.py",
        ("AND of indexes takes either", "if left := self.rows[i] & other.rows[i]:", "if left := self.rows[i] - other.rows[i]:"),
        ("OR of indexes takes one", "rows[i] = rows[i] | r if i in rows else r", "rows[i] = r"),
        ("OR answers for what one side knows", "return Candidates(both, rows)", "return Candidates(self.known | other.known, rows)"),
        ("hits land in the next part", "groups = np.split(rows, starts[1:]) if len(ids) else []", "groups = np.split(rows, starts[1:] - 1) if len(ids) else []"),
    ),
    *_mutants(
        "engine/secondary_index/index_lookup.py",
        ("an index answers for parts that it does not cover", "known: Bools = self.wanted & (self.covered.owner >= 0)", "known: Bools = self.wanted.copy()"),
        ("entries of dead parts shift others", "out.append((parts[live], rows[live]))", "out.append((parts[live], rows[: int(live.sum())]))"),
        ("index parts that may match are skipped", "        alive = ~decision.none\n        every", "        alive = decision.all\n        every"),
    ),
    *_mutants(
        "engine/secondary_index/index_pages.py",
        ("a run of pages loses its last page", "int(starts[end - 1] + sizes[end - 1])", "int(starts[end - 1])"),
        ("index pages that may match are skipped", "    alive = ~decision.none\n", "    alive = decision.all\n"),
    ),
    *_mutants(
        "spark/scan/parquet_filter.py",
        ("an OR may lose a side", 'if not known or (op == "or" and len(known) < len(sides)):', "if not known:"),
        ("a turned comparison is not turned", "return self._compare(_TURNED[op], column, value.type, [value.value])", "return self._compare(op, column, value.type, [value.value])"),
        ("an IN list among the hints lacks its last value", 'return self._compare("in", column, values.type, values.array)', 'return self._compare("in", column, values.type, values.array[:-1])'),
    ),
    *_mutants(
        "spark/scan/filter_contract.py",
        ("hints name columns that are not read", "and _columns_of(conjunct) <= requested:", "and True:"),
        ("a filter that nobody tests is hinted", "if not mine.isdisjoint((FilterTester.SPARK, FilterTester.JOIN)) and _columns_of", "if _columns_of"),
    ),
    *_mutants(
        "spark/scan/join_keys.py",
        ("half of the join's keys are enough", "out.append(key_filter(column_by_ids(schema, (column.id,)), keys, distinct=True))", "out.append(key_filter(column_by_ids(schema, (column.id,)), keys[: (len(keys) + 1) // 2], distinct=True))"),
        ("a single join key is none", "            if not kind:\n", "            if not kind or count == \"1\":\n"),
    ),
    *_mutants(
        "core/types/bounded_batches.py",
        ("joined batches lose the last", "    if held:\n        yield _joined(held)", "    if len(held) > 1:\n        yield _joined(held)"),
        spark=True,
    ),
    *_mutants(
        "spark/executors/read_task.py",
        ("what metadata answers comes from each task", "if task.index == 0 else []", "if task.index >= 0 else []"),
    ),
    *_mutants(
        "spark/scan/pushdown.py",
        ("a filter that is exact in part is owned", "return all(_exact(node) for conjunct", "return any(_exact(node) for conjunct"),
        ("a look finds too few parts", "kept = np.sort(np.concatenate([winners, found.left]))", "kept = np.sort(np.concatenate([winners, found.left[1:]]))"),
    ),
    *_mutants(
        "engine/operations/rows/merge.py",
        ("unmatched target rows are those that match", "            alone[t] = False\n", "            alone[t[1:]] = False\n"),
        ("a matched source row is inserted too", "        self.met[s] = True\n", "        self.met[s[1:]] = True\n"),
        ("a merge may meet a row twice", "if self.plan.unique and len(t) > 1 and", "if False and len(t) > 1 and"),
    ),
    *_mutants(
        "spark/write/merge_pruning.py",
        ("a merge reads for too few keys", "return None if found.num_rows > MOST_FETCHED_KEYS else found", "return found.slice(0, MOST_FETCHED_KEYS)"),
    ),
    *_mutants(
        "spark/jvm_bridge/java/RowLevel.java",
        ("a source that differs is computed twice", "if (!repeatable(source)) {", "if (false) {"),
    ),
    *_mutants(
        "engine/operations/rows/delete.py",
        ("a delete takes whole parts for half", "partial = found.parts.where(~found.parts.all_match)\n    tracked = TrackedRead(found, progress, partial)", "partial = found.parts.where(~found.parts.all_match).take(np.arange(0))\n    tracked = TrackedRead(found, progress, partial)"),
        ("a deletion vector forgets its last batch", "        rows |= BitMap(", "        rows = BitMap("),
    ),
    *_mutants(
        "engine/operations/rows/update.py",
        ("an update keeps the old row of earlier batches", "change.gone.get(ref.part_id, BitMap()) | rows", "rows"),
    ),
    *_mutants(
        "storage/files/protocol.py",
        ("positions of survivors pass over gaps", 'shifts[0 if adjacent else np.searchsorted(ends, indices, side="right")]', "shifts[0]"),
    ),
    *_mutants(
        "storage/files/column_conversion.py",
        ("64-bit offsets are read as 32-bit ones", "            array = plain_list(array)\n", ""),
    ),
    *_mutants(
        "bridges/adoption/adopt_source.py",
        ("deletes of a source are left out", "add=[found.manifest], deletions=found.deletions)", "add=[found.manifest])"),
    ),
    *_mutants(
        "bridges/sources/delta_statistics.py",
        ("bounds that were computed with doubles are believed", "data_type.precision > _EXACT_DIGITS", "data_type.precision > 99"),
    ),
    *_mutants(
        "spark/streaming/micro_batch.py",
        ("a micro-batch reads up to the present", "Position.from_json(end.json())", "self._follower.end()"),
        ("a micro-batch leaves out its last task", "pack_tasks(cut.tasks())", "pack_tasks(cut.tasks()[:-1])"),
    ),
    *_mutants(
        "engine/operations/streaming/stream_source.py",
        ("a micro-batch passes over a part", "run.between(run.ordinal(start), run.ordinal(end))", "run.between(run.ordinal(start) + (start.index > 0), run.ordinal(end))"),
        spark=True,
    ),
    *_mutants(
        "table/expression_filters.py",
        ("a constant on the left is not mirrored", '"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"', '"lt": "lt", "le": "le", "gt": "gt", "ge": "ge"'),
        ("a conjunct that is left out is no conjunct", "finds no such column\n            exact = False", "finds no such column\n            exact = exact and True"),
        ("NaN is above all numbers in pyarrow", "and not self._nan_is_greatest:", "and self._nan_is_greatest:"),
        ("one conjunct is enough", "found.extend(conjuncts_of(_Translation(schema, nan_is_greatest).predicate(part)))", "found[:] = conjuncts_of(_Translation(schema, nan_is_greatest).predicate(part))"),
    ),
    *_mutants(
        "table/arrow_dataset.py",
        ("pyarrow's filter is taken for exact", "left = None if found.exact else condition", "left = None"),
        ("columns of pyarrow's filter are not read", "        needed = _needed(columns, left)\n", "        needed = _needed(columns, None)\n"),
    ),
    *_mutants(
        "table/duckdb_source.py",
        ("texts lose their order with their dictionary", "if wanted == DICTIONARY_TEXT else plain_array(array)", "if wanted == DICTIONARY_TEXT else plain_array(array)[::-1]"),
    ),
    *_mutants(
        "table/polars_source.py",
        ("Polars's filter is taken for exact", "        if found.exact:\n            predicate = None\n", "        predicate = None\n"),
        ("a limit is one row short", "limit=n_rows)", "limit=n_rows and max(n_rows - 1, 1))"),
        ("texts are taken in another order", ".gather(polars.from_arrow(batch[name].indices))", ".gather(polars.from_arrow(batch[name].indices).reverse())"),
    ),
    *_mutants(
        "table/polars_expressions.py",
        ("one side of OR is not enough in Polars", '"Or": "or",', '"Or": "and",'),
        ("comparisons of Polars include their bound", '"Lt": "lt",', '"Lt": "le",'),
    ),
    *_mutants(
        "table/arrow_expressions.py",
        ("comparisons of pyarrow leave out their bound", '"less_equal": "le"', '"less_equal": "lt"'),
    ),
    *_mutants(
        "table/narrowed_scan.py",
        ("a library's filter keeps one conjunct", "every = (*scan.conjuncts, *conjuncts)", "every = tuple(conjuncts[:1])"),
    ),
)  # fmt: skip
