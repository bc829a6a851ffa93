"""Every function that Spark lists (``SHOW FUNCTIONS``): an example where it has a rule, the reason where it has none.

A test asks the installed Spark for its list. It fails if a function is missing here, if one with a rule is not read as a whole, and if one
with a reason is read after all.
"""

from __future__ import annotations

from tamis.core.expr.binding.binder import TRIED
from tamis.core.expr.registry import all_entries, sql_name

OTHER_NAMES = {
    "!": "! late", "array": "array(i, l)[0] > 1150", "array_max": "array_max(array(i, 500)) > 1150", "array_min": "array_min(array(i, 500)) < 50",
    "array_position": "array_position(array(i, 7), 1150) = 1", "arrays_overlap": "arrays_overlap(tags, array('t3', 't4'))",
    "named_struct": "named_struct('a', i, 'b', user).a > 1150", "struct": "struct(i, user) = struct(550, 50L)", "between": "i BETWEEN 100 AND 250", "bigint": "bigint(i) > 1150", "binary": "binary(s) < X'62'", "boolean": "boolean(late)",
    "cardinality": "cardinality(tags) > 1", "case": "CASE WHEN i < 600 THEN 1 ELSE 2 END = 1", "cast": "CAST(ts AS DATE) = '2024-03-05'",
    "curdate": "day > curdate()", "current_date": "day = current_date()", "current_timestamp": "ts > current_timestamp()", "date": "date(ts) = '2024-03-05'",
    "date_part": "date_part('MONTH', ts) = 2", "dateadd": "dateadd(DAY, 30, ts) > '2025-01-15'", "datepart": "datepart('MONTH', ts) = 2", "double": "double(i) > 1150",
    "make_dt_interval": "ts + make_dt_interval(0, i) > '2025-01-15'",
    "e": "x > e()", "extract": "extract(MONTH FROM ts) = 2", "float": "float(i) > 1150", "get": "get(tags, 0) = 't3'",
    "if": "if(i < 600, 1, 2) = 1", "ilike": "s ILIKE 'C%'", "int": "int(x) = 5", "left": "left(s, 1) = 'b'", "localtimestamp": "at > localtimestamp()",
    "locate": "locate('F', level) > 0", "log": "log(x) > 2.4", "now": "ts > now()", "nullif": "nullif(i, 0) > 1150", "nullifzero": "nullifzero(i) > 1150",
    "nanvl": "nanvl(x, 0) > 11.5", "substring_index": "substring_index(s, '0', 1) = 'b'",
    "nvl2": "nvl2(u, i, 0) > 1050", "overlay": "overlay(level PLACING 'X' FROM 1) = 'XNFO'", "pi": "x < pi()", "position": "position('F' IN level) > 0",
    "positive": "positive(i) > 1150", "pow": "pow(x, 2) > 130", "power": "power(x, 2) > 130", "regexp": "level REGEXP '^[IJ].*O$'",
    "regexp_like": "regexp_like(level, '^[IJ].*O$')", "right": "right(level, 1) = 'O'", "rlike": "level RLIKE '^[IJ].*O$'", "size": "size(tags) > 1",
    "smallint": "smallint(i) > 1150", "string": "string(day) LIKE '2024-03%'", "timestamp": "timestamp(day) > '2024-12-15'", "tinyint": "tinyint(st.k) = 4",
    "to_date": "to_date(ts) = '2024-03-05'", "to_timestamp": "to_timestamp(day) > '2024-12-15'", "try_add": "try_add(i, 1) > 1150",
    "try_divide": "try_divide(i, 2) > 560", "try_element_at": "try_element_at(tags, 1) = 't3'", "try_mod": "try_mod(st.k, 5) = 3",
    "try_make_timestamp": "try_make_timestamp(2024, st.k + 1, 1, 0, 0, 0) = '2024-03-01'",
    "try_make_timestamp_ltz": "try_make_timestamp_ltz(2024, st.k + 1, 1, 0, 0, 0) = '2024-03-01'",
    "try_make_timestamp_ntz": "try_make_timestamp_ntz(2024, st.k + 1, 1, 0, 0, 0) = '2024-03-01'", "try_multiply": "try_multiply(i, 2) > 2200", "try_parse_json": "try_variant_get(try_parse_json(body), '$.seq', 'int') = 550",
    "try_subtract": "try_subtract(i, 1) > 1150", "try_to_date": "try_to_date(stamp, 'yyyy-MM-dd HH:mm:ss') > '2024-12-15'",
    "try_to_timestamp": "try_to_timestamp(stamp, 'yyyy-MM-dd HH:mm:ss') > '2024-12-15'", "try_variant_get": "try_variant_get(v, '$.seq', 'int') = 550",
    "variant_get": "variant_get(v, '$.seq', 'int') = 550", "zeroifnull": "zeroifnull(i) > 1150",
}  # fmt: skip
"""An example over the page's table for each name that the parser rewrites to other functions; declared names have theirs in ``which_filters``."""

REASONS = {
    "An aggregate: its value belongs to many rows. Spark refuses it in WHERE.": """
        any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine array_agg avg bit_and bit_or bit_xor
        bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set collect_union corr count count_if count_min_sketch covar_pop
        covar_samp every first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double
        kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value listagg max max_by mean measure median min
        min_by mode percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
        regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg
        theta_union_agg try_avg try_sum tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer
        tuple_union_agg_double tuple_union_agg_integer var_pop var_samp variance vector_avg vector_sum""",
    "A window function: its value depends on the rows around. Spark refuses it in WHERE.": """
        counter_diff cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number""",
    "Returns rows: it stands under SELECT, LATERAL VIEW or FROM, never in WHERE.": """
        collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer python_worker_logs range sql_keywords stack variant_explode
        variant_explode_outer""",
    "Assigns rows to windows of time: Spark plans it as columns below the filter. Compare the time itself, or `date_trunc` of it.": """
        session_window window window_time""",
    "Random, or counted while the query runs: the value does not depend on the stored row.": """
        monotonically_increasing_id rand randn random randstr shuffle uniform uuid""",
    "Depends on the task or the file that a row is read from, which Spark fixes after parts are skipped.": """
        input_file_block_length input_file_block_start input_file_name spark_partition_id""",
    "Reads the session. Spark puts a constant in its place before it plans, so comparisons with it skip; there is no session to ask in an embedded scan.": """
        current_catalog current_database current_path current_schema current_time current_timezone current_user localtime session_user user version""",
    "Follows from the type alone: Spark puts a constant in its place.": "collation typeof",
    "Takes constants only: Spark puts its result in its place.": "schema_of_avro schema_of_csv schema_of_json schema_of_xml",
    "Raises an error for the rows that it is meant for. A part with an error must be read.": "assert_true raise_error",
    "Runs any Java method, which may return anything or fail.": "java_method reflect try_reflect",
    "Scatters its argument: values that lie together have results that lie anywhere.": "hash hmac xxhash64",
    "Encrypts or decrypts: neighbouring values have unrelated results, and a wrong key or text fails.": "aes_decrypt aes_encrypt try_aes_decrypt",
    "Periodic: a range of more than one turn has all results, and Spark's last digits depend on the release of Java.": "cos cot csc sec sin tan",
    "Rises with its argument, but is computed from a sum whose rounding differs between releases of Spark: compare the argument.": "acosh asinh",
    "Counts the bounds below its argument: compare the argument with the bound of the bucket, which skips the same parts.": "width_bucket",
    "Defined for 0 to 20 only, and NULL elsewhere: compare the argument.": "factorial",
    "Reads two numbers of either sign, and turns where one of them is zero: where both are narrow in a part, comparisons of the numbers skip it, too.": "atan2 hypot",
    "Depends on all letters of its texts. Bounds tell how texts begin.": """
        jaro_winkler_similarity levenshtein luhn_check soundex is_valid_utf8 make_valid_utf8 try_validate_utf8 validate_utf8""",
    "Finds or counts what lies inside a text. Bounds tell how texts begin.": """
        find_in_set regexp_count regexp_extract_all regexp_instr regexp_substr sentences""",
    "Writes numbers as texts whose order is not that of the numbers (`'10' < '9'`).": "bin conv format_number format_string printf to_char to_varchar",
    "Between two texts that are numbers there are texts that are not, and their order is not that of the numbers.": "to_number try_to_number",
    "Keeps of each character only its class, so that nearly all texts of a part give the same.": "mask",
    "Makes one character of a number modulo 256.": "char chr",
    "Makes a text of blanks from its length: compare the number.": "space",
    "Encodes bytes by an alphabet that is not in their order: compare the bytes with `unbase64`, `from_base32` or `url_decode` of the constant.": "base64 to_base32 url_encode",
    "Decodes a text by an alphabet that is not in the order of characters, or fails on texts between two good ones.": """
        decode from_base32 to_binary try_to_binary try_url_decode unbase64 unhex url_decode""",
    "Compares by an order of its own, which is not that of the statistics.": "collate",
    "Leaves NULLs out, so that any argument may begin the text: `||` has a rule.": "concat_ws",
    "Chooses one of several texts by a number: `CASE` says the same, and has a rule.": "elt",
    "Of UTF-8, `CAST(s AS BINARY)` says the same, and has a rule; other encodings have another order.": "encode",
    "Changes letters by the words in which they are: `lower` and `ILIKE` have rules.": "initcap",
    "Writes a text as an SQL literal: compare the text.": "quote",
    "Takes a part of an address from its middle. Bounds tell how texts begin.": "parse_url try_parse_url",
    "Names of days and months are not in the order of time: write `dayofweek` and `month`.": "dayname monthname",
    "An interval of months, days and seconds has no order: move times by `timestampadd`, `make_dt_interval` or `n * INTERVAL '1' SECOND`, which have rules.": "make_interval try_make_interval",
    "Cuts a time to buckets of any length: compare the time with the bounds of the buckets. `date_trunc` has a rule.": "time_bucket",
    "Nanoseconds: columns have microseconds, and Spark converts to a type that no table has.": "timestamp_nanos unix_nanos",
    "A time of day: only comparisons and casts of the type are read.": """
        make_time time time_diff time_from_micros time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc to_time try_to_time""",
    "Spark plans `CAST(x AS DECIMAL(10, 0))`, which has a rule; an embedded filter has to say so.": "decimal",
    "Spark plans `CASE WHEN`, which has a rule; an embedded filter has to say so.": "when",
    "Without a pattern, Spark plans a cast, which has a rule; an embedded filter has to say so.": "to_timestamp_ltz to_timestamp_ntz",
    "Makes a map of what the filter says; `CASE` says the same, and has a rule.": "map",
    "Makes another array or map. Statistics describe the stored one, not what is computed from it.": """
        array_append array_compact array_distinct array_except array_insert array_intersect array_prepend array_remove array_repeat array_sort array_union
        arrays_zip filter flatten map_concat map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with sequence slice sort_array
        str_to_map transform transform_keys transform_values zip_with""",
    "Looks for a key, for which `element_at(map, key) IS NOT NULL` has a rule.": "map_contains_key",
    "Joins elements to a text, of which statistics know neither the order nor the number.": "array_join",
    "Folds elements by any function.": "aggregate reduce",
    "Multiplies and adds up vectors, whose elements share one range.": "vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize",
    "Reads a document of which no statistics are kept in this form. Use `get_json_object`, `from_json` or VARIANT.": """
        from_csv from_xml json_array_length json_object_keys xpath xpath_boolean xpath_double xpath_float xpath_int
        xpath_long xpath_number xpath_short xpath_string""",
    "Reads bytes of a format of which no statistics are kept.": "from_avro from_protobuf",
    "Writes a document, whose text is compared with nothing but itself.": "to_avro to_csv to_json to_protobuf to_xml",
    "Makes another VARIANT, which nothing compares; or tells its form, of which no statistics are kept.": """
        is_valid_variant schema_of_variant to_variant_object try_variant_array_append try_variant_insert try_variant_set variant_array_append variant_delete
        variant_insert variant_set variant_strip_nulls""",
    "Reads the bytes of a sketch: bounds of bytes tell nothing about what they estimate.": """
        approx_top_k_estimate hll_sketch_estimate hll_union kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint
        kll_sketch_get_quantile_double kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
        kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float
        theta_difference theta_intersection theta_sketch_estimate theta_union tuple_difference_double tuple_difference_integer tuple_difference_theta_double
        tuple_difference_theta_integer tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double tuple_intersection_theta_integer
        tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double tuple_sketch_summary_integer tuple_sketch_theta_double
        tuple_sketch_theta_integer tuple_union_double tuple_union_integer tuple_union_theta_double tuple_union_theta_integer""",
    "Counts the bits of a bitmap in bytes, whose bounds order them by their first bytes.": "bitmap_count",
    "The place of a number in bitmaps, kept beside them as a column of its own: filter that column.": "bitmap_bit_position bitmap_bucket_number",
    "Geography: no statistics of shapes are kept.": "st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid",
}
"""The functions without a rule, by the reason."""


def reasons() -> dict[str, str]:
    """Return the reason of each function without a rule. Raises ``ValueError`` for a function with two."""
    found: dict[str, str] = {}
    for reason, names in REASONS.items():
        for name in names.split():
            if name in found:
                raise ValueError(f"{name} has two reasons")
            found[name] = reason
    return found


def declared_names() -> set[str]:
    """Return the names with an entry of their own in the registry, operators among them."""
    return {name for entry in all_entries() for name in entry.sql} | OPERATORS


OPERATORS = frozenset(
    {
        "%",
        "*",
        "+",
        "-",
        "/",
        "<",
        "<=",
        "<=>",
        "<>",
        "=",
        "==",
        ">",
        ">=",
        "||",
        "!=",
        "and",
        "or",
        "not",
        "in",
        "div",
        "like",
    }
)


def has_rule(name: str) -> bool:
    """Return whether the parser reads the name, as a function or as a word of Spark's grammar."""
    return sql_name(name) is not None or name in TRIED or name in OPERATORS or name in OTHER_NAMES
