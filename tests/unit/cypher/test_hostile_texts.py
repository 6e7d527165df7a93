"""Texts that try to get past the reader of queries: each is answered, or refused at the right place with the right code.

In the tables `‸` stands before the character where a fault is told, and is no part of the text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from pulse_kg.cypher.engine import compile_query
from pulse_kg.errors import InvalidArgument, InvalidCypher, PulseError, UnsafeCypher
from pulse_kg.mcp.tools.query_cypher import CypherInput
from tests.support.cypher_answers import column_of, rows_of

MARK = "‸"

UNSAFE = [
    # Writing, in every position and case.
    "‸CREATE (n)",
    "‸create (n)",
    "‸CrEaTe (n)",
    "\n\t ‸CREATE (n)",
    "MATCH (n) ‸CREATE (m)",
    "MATCH (n)\n‸SET n.title = 'x'",
    "MATCH (n) ‸SET n:Label RETURN n",
    "MATCH (n) ‸REMOVE n.title RETURN n",
    "MATCH (n) ‸DELETE n",
    "MATCH (n) ‸DETACH DELETE n",
    "MATCH (n) ‸detach\tdelete n",
    "‸MERGE (n:A) ON CREATE SET n.x = 1",
    "MATCH (n) WITH n ‸MERGE (m) RETURN m",
    "UNWIND [1] AS x ‸CREATE (n {x: x})",
    "WITH 1 AS x ‸SET x = 1",
    "OPTIONAL MATCH (n) ‸DELETE n",
    "‸FOREACH (x IN [1] | CREATE (n))",
    "MATCH (n) ‸FOREACH (x IN [n] | SET x.y = 1)",
    "‸INSERT (n)",
    "RETURN 1 UNION ‸CREATE (n) RETURN n",
    "RETURN 1 AS x UNION ALL MATCH (x) ‸DELETE x RETURN x",
    "EXPLAIN ‸CREATE (n)",
    "PROFILE MATCH (n) ‸DELETE n",
    # Writing inside of subqueries.
    "CALL { ‸CREATE (n) RETURN n } RETURN n",
    "MATCH (n) CALL (n) { ‸SET n.x = 1 } RETURN n",
    "CALL { WITH 1 AS x CALL { WITH x ‸MERGE (m) RETURN m } RETURN m } RETURN m",
    "MATCH (n) WHERE EXISTS { MATCH (n) ‸SET n.x = 1 } RETURN n",
    "RETURN COUNT { ‸CREATE (n) }",
    "RETURN COLLECT { MATCH (n) ‸DELETE n RETURN 1 }",
    "RETURN [x IN [1] WHERE EXISTS { ‸CREATE (n) } | x]",
    "MATCH (n) CALL { WITH n RETURN 1 AS x } ‸IN TRANSACTIONS RETURN x",
    # Writing behind comments.
    "/* reads */ ‸CREATE (n)",
    "MATCH (n) /**/‸DELETE/**/ n",
    "MATCH (n) // reads\n‸DELETE n",
    "MATCH (n) /*/ not closed here */ ‸DELETE n",
    "RETURN '/*' AS a UNION ‸CREATE (n) RETURN '*/' AS a",
    "MATCH (n) /* ' */ ‸DELETE n // '",
    "MATCH (n) // '\r\n‸DELETE n",
    "/***/‸CREATE (n)/***/",
    # Files, code, other databases, servers.
    "‸LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line",
    "‸LOAD FROM '/etc/passwd' RETURN *",
    "MATCH (n) ‸LOAD CSV FROM 'https://example.org' AS line RETURN line",
    "‸COPY (MATCH (n) RETURN n) TO '/tmp/out.csv'",
    "‸COPY n FROM 'x.csv'",
    "‸ATTACH '/data/other.db' AS other",
    "‸DETACH other",
    "‸INSTALL httpfs",
    "‸EXPORT DATABASE '/tmp/x'",
    "‸IMPORT DATABASE '/tmp/x'",
    "‸USE other MATCH (n) RETURN n",
    "CALL { ‸USE other MATCH (n) RETURN n } RETURN n",
    "‸DROP INDEX x",
    "‸ALTER TABLE x ADD y STRING",
    "‸SHOW FUNCTIONS",
    "‸START n = node(*) RETURN n",
    "‸BEGIN TRANSACTION",
    "‸COMMIT",
    "MATCH (n) ‸USING INDEX n:A(b) RETURN n",
    # Procedures.
    "‸CALL db.labels()",
    "‸call db.labels() YIELD label RETURN label",
    "‸CALL db.labels",
    "MATCH (n) ‸CALL apoc.cypher.doIt('CREATE (m)', {}) YIELD value RETURN value",
    "‸CALL neptune.read({source: 's3://bucket/x', format: 'csv'}) YIELD row RETURN row",
    "CALL { ‸CALL dbms.procedures() YIELD name RETURN name } RETURN name",
    # Several statements.
    "RETURN 1; ‸CREATE (n)",
    "MATCH (n) RETURN n;\n‸DROP INDEX x;",
    "RETURN 1 ‸CREATE (n)",
]

INVALID = [
    # Nothing.
    "‸",
    "   ‸",
    "‸;",
    "/* nothing */‸",
    "// nothing‸",
    "\n\n‸;",
    # Several statements, or more than one.
    "RETURN 1; ‸RETURN 2",
    "RETURN 1 ‸RETURN 2",
    "RETURN 1;‸;",
    "EXPLAIN ‸PROFILE RETURN 1",
    "RETURN 1 AS x ‸MATCH (n) RETURN n",
    # Comments, strings and names that do not end, or end early.
    "RETURN 1 ‸/* never closed",
    "RETURN 1 ‸/*/",
    "RETURN 1 /* outer /* inner */ *‸/ AS x",
    "RETURN ‸'never closed",
    "RETURN ‸\"never closed'",
    "RETURN ‸'never closed\\'",
    "RETURN 1 AS ‸`never closed",
    "RETURN 1 AS ‸``",
    "RETURN 'a‸\\x'",
    "RETURN '‸\\u12'",
    "RETURN '‸\\uD800'",
    "RETURN '‸\\U00110000'",
    # Characters that look like others.
    "‸ＭＡＴＣＨ (n) RETURN n",
    "‸МАТСН (n) RETURN n",
    "MATCH (n) ‸ＤＥＬＥＴＥ n",
    "MATCH ‸（n） RETURN n",
    "RETURN ‸‘a’",
    "RETURN 1 ‸； CREATE (n)",
    "MATCH (a)‸—>(b) RETURN a",
    "RETURN 1 ‸− 1",
    "RETURN 1 ‸÷ 2",
    "RETURN ‸ǃ1",
    # Characters that are not seen.
    "RETURN 1‸\x00",
    "‸\x00RETURN 1",
    "‸\ufeffRETURN 1",
    "MATCH (n) RETURN n.‸\u200bname",
    "RETURN 1 ‸\u202e+ 1",
    "RETURN 1 ‸\x1b[31m",
    # Keywords as names.
    "MATCH (‸create) RETURN 1",
    "MATCH (‸match) RETURN match",
    "RETURN 1 AS ‸set",
    "UNWIND [1] AS ‸delete RETURN 1",
    "MATCH ()-[‸merge]->() RETURN 1",
    # Numbers.
    "RETURN ‸9223372036854775808",
    "RETURN -‸9223372036854775809",
    "RETURN ‸0x8000000000000000",
    "RETURN ‸1e400",
    "RETURN ‸0x",
    "RETURN ‸0xZZ",
    "RETURN ‸12abc",
    "RETURN ‸1_000",
    "RETURN ‸" + "9" * 5_000,
    # Functions that are none of a query's, or that would not answer the same twice.
    "RETURN ‸randomUUID()",
    "RETURN ‸apoc.cypher.run('CREATE (n)', {})",
    "RETURN ‸load_file('/etc/passwd')",
    "RETURN ‸neptune.read({source: 's3://bucket/x'})",
    "RETURN ‸create(1)",
    "RETURN ‸__import__('os')",
    "RETURN ‸file('x')",
    # Longer paths than are walked.
    "MATCH (a)-[‸*1..21]->(b) RETURN b",
    "MATCH (a)-[‸*999999999999]->(b) RETURN b",
    "MATCH (a)-[r:R‸*..25]->(b) RETURN b",
    # What belongs to other tongues.
    "‸SELECT * FROM boards",
    "‸PRAGMA table_info(boards)",
    "‸g.V().drop()",
    "MATCH (n) RETURN n ‸INTO OUTFILE '/tmp/x'",
    "MATCH (n) RETURN n.‸*",
    "MATCH (n) WHERE n.a ‸!= 1 RETURN n",
    "MATCH (n) WHERE n.a =‸= 1 RETURN n",
    "MATCH (n) WHERE n.a = 1 ‸&& n.b = 2 RETURN n",
    "MATCH (n ‸RETURN n",
    "MATCH (n)‸) RETURN n",
    "RETURN ‸$",
    "RETURN ‸$missing",
    "RETURN ‸?",
    "MATCH (n:‸$label) RETURN n",
    "MATCH ()-[:‸$type]->() RETURN 1",
    "MATCH (n) RETURN n.‸$key",
    "MATCH (n) RETURN n.‸'title'",
]

ANSWERED = [
    # Strings hold whatever they hold.
    ("RETURN 'CREATE (n)' AS x", "CREATE (n)"),
    ('RETURN "; DROP TABLE boards" AS x', "; DROP TABLE boards"),
    ("RETURN '/* ' + '*/' AS x", "/* */"),
    ("RETURN '// no comment' AS x", "// no comment"),
    ("RETURN 'it\\'s' AS x", "it's"),
    ("RETURN '\\\\' AS x // '", "\\"),
    ("RETURN 'ＣＲＥＡＴＥ' AS x", "ＣＲＥＡＴＥ"),
    ("RETURN '\ufb01' AS x", "\ufb01"),
    ("RETURN '\\u0043REATE' AS x", "CREATE"),
    ("RETURN '\x00' AS x", "\x00"),
    ("RETURN 'a\nb' AS x", "a\nb"),
    ('RETURN "\'" AS x', "'"),
    # Comments too.
    ("RETURN 1 AS x // ; CREATE (n)", 1),
    ("RETURN /* CREATE (n) */ 1 AS x", 1),
    ("RETURN /*/ 1 */ 2 AS x", 2),
    ("/* a */ /* b */ RETURN /* c */ 1 /***/ AS x /* d */", 1),
    ("RETURN 7 /* / */ AS x", 7),
    ("RETURN 6 /2/*3*/ AS x", 3),
    ("// '\nRETURN 1 AS x // \"", 1),
    # Keywords are names after a dot, a colon and in back-ticks, and in maps.
    ("RETURN {create: 1, set: 2}.create AS x", 1),
    ("RETURN {delete: {merge: 3}}.delete.merge AS x", 3),
    ("WITH {load: 1} AS copy RETURN copy.load AS x", 1),
    ("RETURN 1 AS `CREATE`", 1),
    ("WITH 1 AS `; DROP` RETURN `; DROP` AS x", 1),
    ("WITH 1 AS `a``b` RETURN `a``b` AS x", 1),
    ("MATCH (n:Create) RETURN count(n.set) AS x", 0),
    ("MATCH (n:`DROP TABLE x`)-[:DELETE|MERGE]->(:Match) RETURN count(*) AS x", 0),
    ("MATCH (start)-[use:LOAD]->(show) RETURN count(*) AS x", 0),
    ("WITH 1 AS drop, 2 AS install RETURN drop + install AS x", 3),
    ("WITH 5 AS count RETURN count AS x", 5),
    # One statement.
    ("RETURN 1 AS x;", 1),
    ("RETURN 1 AS x ;\n // the end", 1),
    ("return 1 as x", 1),
    ("rEtUrN 1 aS x", 1),
    ("RETURN\u00a01 AS x", 1),
    # Names in other scripts, and numbers at their limits.
    ("WITH 1 AS größe RETURN größe AS x", 1),
    ("WITH {名前: 'x'} AS 値 RETURN 値.名前 AS x", "x"),
    ("RETURN 9223372036854775807 AS x", 2**63 - 1),
    ("RETURN -9223372036854775808 AS x", -(2**63)),
    # Signs that could be an arrow.
    ("WITH 5 AS n RETURN (n) - -(n) AS x", 10),
    ("WITH 5 AS n RETURN (n)<-(n) AS x", False),
    ("WITH 5 AS n RETURN (n)-[1, 2][0] AS x", 4),
    ("MATCH (n) WHERE (n)--() RETURN count(*) AS x", 0),
    ("RETURN 0x7FFFFFFFFFFFFFFF AS x", 2**63 - 1),
]


@pytest.mark.parametrize("marked", UNSAFE)
def test_what_would_do_more_than_read_is_unsafe_and_the_word_is_pointed_at(marked: str) -> None:
    refused = _refusal(marked)
    assert isinstance(refused, UnsafeCypher)
    assert refused.code == "unsafe_cypher"
    assert _place(refused) == _marked_place(marked)


@pytest.mark.parametrize("marked", INVALID)
def test_what_is_no_query_is_invalid_and_the_place_is_told(marked: str) -> None:
    refused = _refusal(marked)
    assert isinstance(refused, InvalidCypher)
    assert refused.code == "invalid_cypher"
    assert _place(refused) == _marked_place(marked)


@pytest.mark.parametrize(("query", "value"), ANSWERED)
def test_what_only_looks_hostile_is_answered(query: str, value: Any) -> None:
    assert column_of(query) == [value]


@pytest.mark.parametrize("marked", [*UNSAFE, *INVALID])
def test_a_refusal_says_where_in_words_and_is_short(marked: str) -> None:
    refused = _refusal(marked)
    line, column = _place(refused)
    assert str(refused).startswith(f"Line {line}, column {column}: ")
    assert len(str(refused)) < 400
    assert str(refused).isprintable()


# Long and deep texts.

DEEP = [
    "RETURN " + "(" * 2_400 + "1" + ")" * 2_400,
    "RETURN " + "(" * 4_900,
    "RETURN " + "[" * 2_000 + "]" * 2_000,
    "RETURN " + "[" * 4_900,
    "RETURN " + "{a: " * 1_200 + "1" + "}" * 1_200,
    "RETURN " + "[x IN " * 1_100 + "[]" + "]" * 1_100,
    "RETURN " + "NOT " * 4_000 + "true",
    "RETURN " + "- " * 4_000 + "1",
    "RETURN " + "CASE WHEN " * 1_600,
    "RETURN " + "CASE " * 2_400,
    "RETURN " + "size(" * 1_600 + "[]" + ")" * 1_600,
    "RETURN 1" + "[0" * 1_600 + "]" * 1_600,
    "RETURN " + "a[" * 2_400,
    "RETURN " + "EXISTS { MATCH (n) WHERE " * 500 + "true" + "}" * 500,
    "RETURN " + "COUNT { RETURN " * 1_000,
    "CALL { " * 900 + "RETURN 1 AS x" + "} RETURN x" * 900,
    "RETURN " + "(a)-[" * 900,
    "RETURN " + "[(a)-->(b) WHERE " * 400,
    "RETURN " + "all(x IN [1] WHERE " * 450 + "true" + ")" * 450,
    "RETURN " + "reduce(a = 0, b IN [1] | " * 350 + "1" + ")" * 350,
    "MATCH " + "shortestPath(" * 1_200,
    "RETURN " + "n.a" + ".a" * 2_400,
    "RETURN n" + ":A" * 2_400 + ".x",
    "RETURN 1" + " + 1" * 2_400 + " +",
    "RETURN 1" + " ^ 1" * 2_400 + " ^",
    "RETURN 1" + " < 1" * 2_400 + " <",
    "RETURN x" + " IS NULL" * 2_000 + " IS",
    "RETURN x" + " IN x" * 2_000 + " IN",
    "RETURN true" + " OR true" * 1_500 + " OR",
    "MATCH (a)" + "-->(a)" * 800 + "-",
    "MATCH (a)" + ", (a)" * 1_200 + ",",
    "MATCH (n) " * 400,
    "RETURN 1 AS x " + "UNION RETURN 1 AS x " * 800,
    "WITH 1 AS x " * 1_000,
    "((((((((((" * 400 + "a)-->(b",
    "RETURN " + "(a)-->(b) = " * 300,
    "RETURN " + "((a)--" * 500,
    "RETURN " + "[[a]-" * 900,
    "MATCH (a)<-" + "-<" * 2_000,
]
LONG = [
    "RETURN 1 /*" + "*" * 100_000,
    "RETURN 1 /*" + "/" * 100_000,
    "RETURN '" + "\\\\" * 50_000,
    "RETURN 1 AS " + "`" * 100_001,
    "RETURN " + "9" * 100_000,
    " " * 100_000 + "RETURN 1",
    "RETURN 1 //" + "*" * 100_000,
    "RETURN '" + "é" * 16_000 + "'",
]
LONGEST = [
    "RETURN 1 /*" + "*" * 16_000,
    "RETURN 1 /*" + "*/ /*" * 3_000,
    "RETURN '" + "\\\\" * 8_000,
    "RETURN '" + "\\" * 16_001,
    "RETURN 1 AS " + "`" * 16_001,
    "RETURN " + "9" * 16_000,
    "RETURN 0x" + "f" * 16_000,
    "RETURN 1e" + "9" * 16_000,
    "RETURN 1." + "0" * 16_000 + "x",
    " " * 16_000 + "RETURN",
    "RETURN " + "a" * 16_000 + " b",
    "RETURN 1 //" + "\\" * 16_000 + "\n;;",
]


def _named(text: str) -> str:
    return text[:24].replace("\n", " ")


@pytest.mark.parametrize("query", DEEP, ids=_named)
def test_a_deep_or_repeated_text_is_refused_in_a_number_of_steps_that_grows_with_its_length(query: str) -> None:
    assert len(query.encode()) <= 16 * 1024
    with _few_calls(120 * len(query)):
        assert isinstance(_refusal(query), InvalidCypher)


@pytest.mark.parametrize("query", LONGEST, ids=_named)
def test_a_long_token_is_read_in_few_steps(query: str) -> None:
    assert len(query.encode()) <= 16 * 1024
    with _few_calls(2 * len(query) + 1_000):
        assert isinstance(_refusal(query), InvalidCypher)


@pytest.mark.parametrize("query", LONG, ids=_named)
def test_a_text_beyond_the_limit_is_not_read_at_all(query: str) -> None:
    with _few_calls(100):
        refused = _refusal(query)
    assert isinstance(refused, InvalidCypher)
    assert "16384" in str(refused).replace(",", "")


def test_nesting_as_deep_as_is_allowed_is_answered() -> None:
    assert column_of("RETURN " + "(" * 40 + "1" + ")" * 40) == [1]
    assert column_of("RETURN " + "[" * 40 + "]" * 40 + " = []") == [False]
    assert column_of("RETURN " + "1 + " * 400 + "1") == [401]
    assert column_of("RETURN " + "true AND " * 400 + "true") == [True]


# Parameters are values, whatever they look like.


@pytest.mark.parametrize("value", ["' OR 1 = 1 //", "CREATE (n)", "`", "\x00", "$x", "').drop()", "*/", "\\", "${x}", "board_id"])
def test_a_parameter_is_a_value_and_never_text_of_the_query(value: str) -> None:
    assert column_of("RETURN $x AS x", x=value) == [value]
    assert column_of("MATCH (n {title: $x}) RETURN n.title", f"CREATE ({{title: 'a'}}), ({{title: {_quoted(value)}}})", x=value) == [value]
    assert column_of("WITH {a: 1} AS m RETURN m[$x] AS x", x=value) == [None]


@pytest.mark.parametrize(
    "params",
    [{"x": 2**63}, {"x": -(2**63) - 1}, {"x": {"a": [2**70]}}, {"x": float("nan")}, {"x" * 65: 1}, {"": 1}, {"x": "a" * 300_000}],
)
def test_a_parameter_that_no_query_can_hold_is_refused_before_the_engine_sees_it(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        CypherInput.read({"board_id": "alpha", "cypher": "RETURN 1", "params": params})


def test_a_parameter_that_nests_too_deep_breaks_nothing() -> None:
    value: Any = 1
    for _ in range(5_000):
        value = [value]
    with pytest.raises(InvalidArgument):
        CypherInput.read({"board_id": "alpha", "cypher": "RETURN 1", "params": {"x": value}})
    for query in ("RETURN $x AS x", "RETURN $x = $x AS x", "UNWIND [$x, $x] AS x RETURN DISTINCT x ORDER BY x"):
        with pytest.raises(InvalidCypher):
            rows_of(query, x=value)


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _refusal(marked: str) -> PulseError:
    with pytest.raises(PulseError) as refused:
        compile_query(marked.replace(MARK, ""), {})
    return refused.value


def _place(refused: PulseError) -> tuple[Any, Any]:
    return refused.details.get("line"), refused.details.get("column")


def _marked_place(marked: str) -> tuple[int, int]:
    before = marked.partition(MARK)[0]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


class _few_calls:  # noqa: N801 - reads as a statement
    """Fails if more functions are called inside than so many: steps that do not depend on the machine, as time would."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.calls = 0
        self.before: Callable[..., Any] | None = None

    def __enter__(self) -> _few_calls:
        self.before = sys.getprofile()
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self.before)
        assert self.calls <= self.most, f"{self.calls} calls where {self.most} are many"

    def _count(self, _frame: Any, event: str, _argument: Any) -> None:
        self.calls += event in {"call", "c_call"}
        if self.calls > 20 * self.most:
            raise AssertionError(f"more than {self.calls} calls")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("MATCH (n) WHERE n.title == 'a' RETURN n", "Write one '=' to compare."),
        ("MATCH (n) WHERE n.title LIKE 'a%' RETURN n", "CONTAINS"),
        ("MATCH (n) RETURN n.title, count(*) GROUP BY n.title", "no GROUP BY"),
        ("SELECT * FROM nodes", "MATCH"),
    ],
)
def test_what_other_languages_write_is_answered_with_what_says_the_same_here(text: str, hint: str) -> None:
    with pytest.raises(InvalidCypher) as refused:
        compile_query(text, {})
    assert hint in refused.value.details["hint"]
    assert hint in refused.value.message
