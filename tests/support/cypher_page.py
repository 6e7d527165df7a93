"""The parts of docs/cypher.md that are computed: lists of names, limits, and the answers to its queries on the boards of the demo.

`python -m tests.support.cypher_page` writes them anew.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Final

from pulse_kg.adapters import properties
from pulse_kg.cli.client_tools import Tools
from pulse_kg.cli.demo_view import Silence
from pulse_kg.cli.story import AUTHOR, BOARD, SECOND, documents
from pulse_kg.cli.story_run import Checks, Story
from pulse_kg.cli.story_team import TEAM, record
from pulse_kg.cypher import limits, regex, values
from pulse_kg.cypher.aggregates import AGGREGATES
from pulse_kg.cypher.budget import Limits as Budgets
from pulse_kg.cypher.functions import FUNCTIONS, REFUSED_FUNCTIONS
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.schema import ATTRIBUTES
from pulse_kg.mcp.tools import query_cypher as tool
from pulse_kg.usecases.query_cypher import EDGE_KEYS, NODE_KEYS
from pulse_kg.usecases.services import Limits
from tests.support.reads_page import ROOT, block, written
from tests.support.world import Agent, opened

PAGE: Final = ROOT / "docs" / "cypher.md"
_WITHOUT_TIME: Final = -1
"""PROFILE's last column is the time that a step took."""

GROUPS: Final[Mapping[str, str]] = {
    "aggregates": "count sum avg min max collect stDev stDevP percentileCont percentileDisc",
    "nodes, relationships, paths": "id elementId label labels type properties keys startNode endNode nodes relationships rels length",
    "any value": "coalesce nullIf exists",
    "conversions": (
        "toString toStringOrNull toStringList toInteger toIntegerOrNull toIntegerList toFloat toFloatOrNull toFloatList "
        "toBoolean toBooleanOrNull toBooleanList"
    ),
    "lists": "size isEmpty head last tail reverse range",
    "texts": "toLower lower toUpper upper char_length character_length left right substring replace split trim btrim ltrim rtrim",
    "numbers": "abs sign isNaN ceil ceiling floor round sqrt exp log log10 e pi rand",
    "angles": "sin cos tan cot asin acos atan atan2 sinh cosh tanh degrees radians haversin",
    "time": (
        "datetime date timestamp datetime.fromEpochMillis datetime.fromEpoch datetime.truncate date.truncate "
        "duration duration.between duration.inMonths duration.inDays duration.inSeconds"
    ),
}
"""Sort of functions → their names."""


@dataclass(frozen=True)
class Question:
    """A worked question of the page.

    Attributes:
        number: From 1 on.
        board: Where it is asked.
        params: Of the query.
        query: In Cypher.
    """

    number: int
    board: str
    params: Mapping[str, Any]
    query: str

    @property
    def block(self) -> str:
        """The block with its answer."""
        return f"answer {self.number}"


_QUESTION: Final = re.compile(
    r"^### (?P<number>\d+)\. [^\n]+\n\n(?P<said>.*?)```cypher\n(?P<query>.*?)\n```\n\n<!-- answer (?P<answer>\d+) -->",
    re.DOTALL | re.MULTILINE,
)
_PARAMS: Final = re.compile(r"`params` `(\{.*?\})`")


def questions(page: str) -> list[Question]:
    """The worked questions."""
    found = []
    for match in _QUESTION.finditer(page):
        assert match["number"] == match["answer"], match[0]
        params = _PARAMS.search(match["said"])
        board = TEAM if f"`{TEAM}`" in match["said"] else BOARD
        found.append(Question(int(match["number"]), board, json.loads(params[1]) if params else {}, match["query"]))
    return found


@contextmanager
def boards() -> Iterator[Agent]:
    """The two boards of the demo, in memory; an agent who may ask both."""
    with opened(environment={"PULSE_KG_CYPHER_PER_MINUTE": "1000"}) as world:
        for board in (BOARD, TEAM):
            world.board(board)
        author, second = world.agent(AUTHOR, boards=(BOARD, TEAM)), world.agent(SECOND, boards=(BOARD,))
        checks = Checks()
        agents = {AUTHOR: Tools(author.try_call), SECOND: Tools(second.try_call)}
        Story(BOARD, agents, documents(), Silence(), checks).play()
        record(TEAM, agents[AUTHOR], checks)
        assert not checks.failures
        yield author


# What needs no board.


def lists() -> dict[str, str]:
    """The blocks that the code's tables make."""
    return {
        "functions": _functions(),
        "refused functions": "> " + " · ".join(f"`{name}`" for name in sorted(REFUSED_FUNCTIONS)),
        "properties": _properties(),
        "limits": _limits(),
    }


def _functions() -> str:
    arities = {f.name: f.arity for f in FUNCTIONS.values()} | {a.name: str(a.arguments) for a in AGGREGATES.values()}
    rows = [(group, " · ".join(f"`{name}` {arities[name]}" for name in names.split())) for group, names in GROUPS.items()]
    return table(("", "name and number of arguments"), rows)


def _properties() -> str:
    own = {key for keys in ATTRIBUTES.values() for key in keys}
    common = [f.name for f in fields(Node) if f.name in NODE_KEYS - own]
    rows = [
        ("every node", _names(["id", *common])),
        *((f"`{node_type}`", _names(sorted(keys))) for node_type, keys in ATTRIBUTES.items()),
        ("every relationship", _names(["edge_id", *(f.name for f in fields(Edge) if f.name in EDGE_KEYS - {"edge_id"})])),
        ("of these, instants", _names(properties._INSTANTS)),
    ]
    return table(("", "properties"), rows)


def _names(names: Sequence[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def _limits() -> str:
    budget, service = Budgets(), Limits()
    rows: list[tuple[str, float, str]] = [
        ("bytes of the query", limits.MAX_BYTES, "`payload_too_large`"),
        ("tokens of the query", limits.MAX_TOKENS, "`invalid_cypher`, QueryTooLong"),
        ("levels of nesting; a subquery counts as 8", limits.MAX_DEPTH, "`invalid_cypher`, NestingTooDeep"),
        ("clauses, and parts of a UNION", limits.MAX_CLAUSES, "`invalid_cypher`, QueryTooLong"),
        ("elements in the patterns of one MATCH", limits.MAX_PATTERN, "`invalid_cypher`, QueryTooLong"),
        ("relationships of one path", limits.MAX_HOPS, "`invalid_cypher`, PathTooLong"),
        ("characters of a pattern of `=~`", regex.MAX_PATTERN, "`invalid_cypher`, InvalidArgumentValue"),
        ("size of a compiled pattern of `=~`, times the characters of its text", regex.MAX_WORK, "`resource_exhausted`, pattern_work"),
        ("parameters", tool.MAX_PARAMS, "`invalid_argument`"),
        ("values in them", tool.MAX_PARAM_VALUES, "`invalid_argument`"),
        ("characters in them", tool.MAX_PARAM_CHARACTERS, "`invalid_argument`"),
        ("rows of a result whose query has no LIMIT of its own", limits.DEFAULT_ROWS, "`truncated`"),
        ("rows of a result", limits.MOST_ROWS, "`truncated`"),
        ("seconds of a run", service.cypher_seconds, "`query_timeout`"),
        ("rows and trails that are gone through, and items of lists that are made", budget.steps, "`resource_exhausted`, steps"),
        ("nodes and relationships that are fetched", budget.elements, "`resource_exhausted`, elements"),
        ("characters of their texts", budget.characters, "`resource_exhausted`, characters"),
        ("rows to hold at once, to sort, group or tell apart", budget.held_rows, "`resource_exhausted`, held_rows"),
        ("reads of the store", budget.requests, "`resource_exhausted`, requests"),
        ("items of one list", values.MAX_ITEMS, "`resource_exhausted`, list_items"),
        ("characters of one text", values.MAX_TEXT, "`resource_exhausted`, text_characters"),
        ("bytes of the rows", service.response_bytes, "`resource_exhausted`, response_bytes"),
        ("queries of one agent that run at once in a process; of all agents twice as many", service.cypher_at_once, "`rate_limit`"),
        ("calls of one agent in a minute", service.cypher_per_minute, "`rate_limit`"),
    ]
    return table(("what", "most", "beyond it"), [(what, f"{most:,g}" if most < 1 else f"{most:,.0f}", then) for what, most, then in rows])


# What is asked.


def asked(page: str, agent: Agent) -> dict[str, str]:
    """The blocks that hold answers."""
    made = {q.block: answer(agent, q) for q in questions(page)}
    for name in ("values", "notices", "errors", "differences"):
        made[name] = _judged(block(page, name), agent)
    made["plan"] = _plan(block(page, "plan"), agent)
    return made


def answer(agent: Agent, question: Question) -> str:
    """The rows of a question's answer, as a table."""
    found = agent.call("query_cypher", board_id=question.board, cypher=question.query, params=dict(question.params))
    assert not {"truncated", "notices"} & found.keys(), found
    return table(found["columns"], [[_cell(value) for value in row] for row in found["rows"]])


def _judged(rows: str, agent: Agent) -> str:
    """A table of queries, their second column being what comes of them: rows, notices or a refusal."""
    head, line, *lines = rows.splitlines()
    made = []
    for row in lines:
        query, _, *rest = re.split(r"(?<!\\)\|", row.strip("|"))
        made.append(
            "| " + " | ".join([query.strip(), outcome(agent, query.strip().strip("`").replace("\\|", "|")), *map(str.strip, rest)]) + " |"
        )
    return "\n".join([head, line, *made])


def outcome(agent: Agent, query: str) -> str:
    """What comes of a query, in one line."""
    found = agent.try_call("query_cypher", {"board_id": BOARD, "cypher": query})
    if found.is_error:
        error = found.body["error"]
        details = error["details"]
        return f"`{error['code']}`, {details['kind']}, {details['line']}:{details['column']}"
    rows = found.body["rows"]
    shown = ", ".join(_cell(value) if len(rows) == 1 else json.dumps(value) for row in rows[:1] for value in row) if rows else "no rows"
    told = "".join(f"; {notice}" for notice in found.body.get("notices", ()))
    more = f"{found.body['row_count']:,} rows" if len(rows) > 1 else shown
    return f"{_escaped(more)}{_escaped(told)}" + ("; `truncated`" if found.body.get("truncated") else "")


_PLANNED: Final = re.compile(r"```cypher\n(.*?)\n```", re.DOTALL)


def _plan(text: str, agent: Agent) -> str:
    """A query under PROFILE and its plan, without the times."""
    found = _PLANNED.match(text)
    assert found is not None
    told = agent.call("query_cypher", board_id=BOARD, cypher=found[1])
    rows = [[_cell(value) if value is not None else "" for value in row[:_WITHOUT_TIME]] for row in told["rows"]]
    return f"{found[0]}\n\n{table(told['columns'][:_WITHOUT_TIME], rows)}"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for the page."""
    lines = [f"| {' | '.join(line)} |" for line in (columns, *rows)]
    return "\n".join([lines[0], "|---" * len(columns) + "|", *lines[1:]])


def _cell(value: Any) -> str:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _escaped(shown)


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    with boards() as agent:
        blocks = {**lists(), **asked(page, agent)}
    PAGE.write_text(written(page, blocks.items()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
