"""Awkward JSON documents, and expressions over them; ``v`` is the VARIANT of those that have one, ``s`` the text."""

from __future__ import annotations

from tamis.core.types import LONG, STRING, VARIANT, Field, Schema

SCHEMA = Schema((Field("v", VARIANT, True, 1), Field("s", STRING, True, 2), Field("n", LONG, True, 3)))

DOCUMENTS: list[str | None] = [
    None, "", " ", "null", "5", '"x"', "true", "[]", "{}", "[1,2]", '[{"a":1}]', "hello", "{", '{"a"', '{"a":}', '{"a":1', '{"a":1}xyz', '{"a":1,xyz', '{"a":1}{"a":2}',
    '{"a":1}', '{"a":0}', '{"a":-7}', '{"a":300}', '{"a":3000000000}', '{"a":9223372036854775807}', '{"a":9223372036854775808}', '{"a":-9223372036854775808}',
    '{"a":12345678901234567890123}', '{"a":99999999999999999999999999999999999999}', '{"a":999999999999999999999999999999999999999}', '{"a":-0}', '{"a":-0.0}',
    '{"a":1.0}', '{"a":1.5}', '{"a":1.50}', '{"a":-2.5}', '{"a":0.1}', '{"a":1e2}', '{"a":1E-7}', '{"a":1e38}', '{"a":1e400}', '{"a":1e-400}', '{"a":123456789.123456789}',
    '{"a":0.1000000000000000055511151231257827}', '{"a":1.23456789012345678901234567890123456789012}', '{"a":10000000.0}', '{"a":0.00001}', '{"a":NaN}', '{"a":007}', '{"a":+1}', '{"a":.5}',
    '{"a":true}', '{"a":false}', '{"a":null}', '{"a":"5"}', '{"a":" 5 "}', '{"a":"1.5"}', '{"a":"true"}', '{"a":"t"}', '{"a":"NaN"}', '{"a":"Infinity"}', '{"a":""}', '{"a":"abc"}',
    '{"a":"2020-01-01"}', '{"a":"2020-01-01T10:00:00Z"}', '{"a":"x\\ty"}', '{"a":"x\ty"}', '{"a":"\\u00e9"}', '{"a":"é"}', '{"a":"\\ud83d\\ude00"}', '{"a":"\\ud800"}', '{"a":"\\/x"}', '{"a":"q\\"q"}',
    '{"a":[]}', '{"a":{}}', '{"a":[1,null,{"b":2}]}', '{"a":[[1,2],[3]]}', '{"a":{"b":1}}', '{"a":{"b":null}}', '{"a":{"b":"x","c":[true]}}', '{"a":{"b" : 1.10 , "c":"\\u00e9\\n"}}',
    '{"a":1,"a":2}', '{"a":null,"a":2}', '{"a":{},"a":{"b":1}}', '{"a":{"b":1,"b":2}}', '{"A":1}', '{"a.b":3,"a":{"b":4}}', '{"":1}', '{"a b":1}', "{'a':'q'}", '{"a":1 /*c*/}', '{a:1}',
    '{"a":1,"a":"z"}', '{"a":"z","a":1}', '{"a":1.5,"a":[1]}', '{"a":{"b":1},"a":7}', '{"a":{"b":1},"a":{"b":"z"}}', '{"a":{"b":1,"b":"z"}}',
    "  {\"a\":7}\n ", "\ufeff{\"a\":1}", '{"b":1,}', '{"a":1,}', '{"a":"x" "b":1}', '{"a":"' + "y" * 100 + '"}', '{"é":{"ü":1}}', '{"a":[0,' + "[" * 40 + "]" * 40 + "]}",
    '{"k":7,"a":"it\\\'s"}', "{'k':7,'a':'b\\\"c'}", "{'a':'q\"q\\\\'}", '{"a":127}', '{"a":128}', '{"a":200}', '{"a":255}', '{"a":256}', '{"a":-128}', '{"a":-129}', '{"a":1' + "0" * 400 + "}",
    '{"a":-1' + "0" * 400 + "}", "12,34", "12]", "12 x", "true_", "true,x", "true ]", "null]", "null_", "false$", "false\u00e9", '"x",1',
    '{"a":{"\uff5e":1,"\U0001f600":2}}', '{"\uff5e":1,"":{},"\U0001f600":2,"a":3}',
    '{"a":1.00000005960464477539062500001}', '{"a":1.000000059604644775390625}', '{"a":1.0000000596046448}', '{"a":16777217.0000000001}', '{"a":18014399583223809}',
]  # fmt: skip

PHRASES = [
    *(f"get_json_object(s, {path})" for path in ("'$.a'", "'$.a.b'", "'$'", "'$[0]'", "'$.a[1]'", "'$.a[2].b'", "'$[\\'a.b\\']'", "'$.a b'", "'$.A'", "'$.é.ü'", "'$.a[1][0]'", "'$.k'")),
    *(f"from_json(s, 'a {kind}').a" for kind in ("STRING", "INT", "BIGINT", "SMALLINT", "TINYINT", "DOUBLE", "FLOAT", "BOOLEAN")),
    "from_json(s, 'a STRUCT<b: INT>').a.b", "from_json(s, 'a STRUCT<b: STRING, c: STRING>').a.c",
    *(f"variant_get(v, '$.a', '{kind}')" for kind in ("int", "bigint", "tinyint", "double", "float", "decimal(10,2)", "decimal(38,10)", "boolean", "string", "date", "timestamp", "binary")),
    *(f"try_variant_get(v, '$.a', '{kind}')" for kind in ("int", "bigint", "double", "decimal(10,2)", "boolean", "string", "date", "binary")),
    "v:a::string", "v:a.b::string", "v:a[1]::string", "v:a[2].b::int", "v:['a.b']::int", "v:a.c[0]::boolean", "v::string", "v:a[1][0]::bigint", "v:`a b`::int",
    "v:a IS NULL", "v:a.b IS NOT NULL", "v IS NULL", "is_variant_null(v)", "is_variant_null(v:a)", "is_variant_null(v:a.b)", "try_cast(v:a AS INT)", "cast(v:a AS STRING)",
    "cast(get_json_object(s, '$.a') AS INT)", "try_cast(get_json_object(s, '$.a') AS FLOAT)", "try_cast(get_json_object(s, '$.a') AS DOUBLE)", "try_cast(get_json_object(s, '$.a') AS DECIMAL(10,2))", "try_cast(get_json_object(s, '$.a') AS BIGINT)",
    "try_parse_json(s):a::string", "try_variant_get(parse_json(s), '$.a', 'double')", "try_variant_get(try_parse_json(s), '$.a', 'int')", "try_parse_json(s) IS NULL", "is_variant_null(try_parse_json(s):a)",
]  # fmt: skip

TYPED = [
    "true", "false", "5Y", "-1Y", "300", "70000", "3000000000", "CAST(NULL AS INT)", "1.5", "CAST(-0.4 AS DECIMAL(5, 2))", "99999999999999999999999999999999999999", "12345678901234567890.123456789",
    "FLOAT(1.5)", "FLOAT(0.1)", "FLOAT('NaN')", "FLOAT('-Infinity')", "FLOAT(1e20)", "-0.0F", "1.5D", "1e20D", "DOUBLE('NaN')", "DOUBLE('Infinity')", "-0.0D", "1e-7D", "'5'", "'1.5'", "'abc'", "'true'", "'2020-01-01'", "''", "'NaN'",
    "DATE'1970-01-06'", "DATE'0001-01-01'", "TIMESTAMP'1970-01-01 00:00:05'", "TIMESTAMP'1969-12-31 23:59:59.5'", "TIMESTAMP'2020-02-29 12:34:56.789'", "TIMESTAMP'9999-12-31 23:59:59'", "TIMESTAMP_NTZ'1970-01-01 00:00:05'", "TIMESTAMP_NTZ'1970-01-06'",
    "X''", "X'35'", "X'00000005'", "ARRAY(1)", "NAMED_STRUCT('x', 1)",
]  # fmt: skip
"""Values that a VARIANT holds with their type, which text has not."""
TARGETS = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,18)", "decimal(3,3)", "decimal(38,0)", "string", "date", "timestamp", "timestamp_ntz", "binary")  # fmt: skip

PATHS = [
    "$", "$ ", " $", "$.a", "$ .a", "$. a", "$.a ", "$.a .b", "$.a. b", '$["a"]', "$['a']", "$.['a']", "$.a['b']", "$.a.['b']", '$.a["b"]', '$["a"].b', "$[ 0 ]", "$[0]", "$[0 ]", "$[ 0]", "$.*", "$['*']", "$[*]", "$['a','b']", "$..a", "$.", "$.a.",
    "$['']", '$[""]', "$[-1]", "$a", "a", "", "$[a]", "$[0][1]", "$.a[0]", "$.a[0].b", "$.a[*].b", "$.a[*]", "$[00]", "$[01]", "$[1]", "$[\u0660]", "$[\u0661]", "$.a?", "$[?(@.a)]", "$.a]", "$.a]b", "$['a]']", "$['a.b']", "$['a,b']", "$[' a']", "$[ 'a']", "$['a ']",
    "$['a' ]", '$."a"', "$.'a'", "$['\"a\"']", "$.a'b", "$.a-b", "$.\u00e9", "$.$", "$.@", "$.0", "$['0']", "$._a", "$.A", "$[0].", "$[0]a", "$.a[0]b", "$$", "$.a$", "$[99999999999]", "$[999999999]", "$.\ta", "$.a\n", "$.a\u00a0", "$.\u00a0a", "$.a b", "$..", "$[]", "$.a..b",
    "$.a.*", "$[0:1]", "$[0,1]", "$.a[ 0]", "$.a [0]", "$[0] [1]",
]  # fmt: skip
"""Paths in the two grammars of Spark, and beside them."""
PATH_DOCUMENTS = [
    '{"a":1,"b":2}', '{"a":{"b":1}}', '{"a":[{"b":1},{"b":2}]}', "[5,6]", "[[1,2],3]", '{"":7}', '{" a":8}', '{"a ":9}', '{"*":3}', '{"a]":4}', '{"\\"a\\"":4}', '{"a.b":5}', '{"a,b":1}', '{"0":1}', '{"a":{"":1}}', '{"a\'b":1}', '{"a":[[1,2],[3]]}', '{"A":3}',
    '{"\u00e9":5,"_a":3,"$":4,"a-b":6,"@":1}', '{"a]b":1,"a b":2,"a\u00a0":3,"a$":4}',
]  # fmt: skip

NUMBER_WORDS = [
    text.format(word)
    for word in ("INF", "+INF", "-INF", "Infinity", "+Infinity", "-Infinity", "NaN", "inf", "nan", "-inf", "+NaN", "-NaN", "infinity", "1.5", "", "1e5", " NaN", "1f", "+1")
    for text in ('{{"a":"{}"}}', '{{"a":{}}}', '{{"a":[{}]}}')
]  # fmt: skip
