"""query_cypher: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId
from pulse_kg.mcp.tools.reading import not_blank, truncated_if
from pulse_kg.usecases.query_cypher import query_cypher
from pulse_kg.usecases.services import Services

MAX_PARAMS: Final = 100
MAX_PARAM_NAME: Final = 64
MAX_PARAM_VALUES: Final = 20_000
MAX_PARAM_CHARACTERS: Final = 262_144
_INTEGERS: Final = (-(2**63), 2**63 - 1)


def _storable(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters, if a query can take them; else ValueError."""
    problems: dict[str, None] = {}
    if any(not 1 <= len(name) <= MAX_PARAM_NAME for name in params):
        problems[f"must have names of 1 to {MAX_PARAM_NAME} characters"] = None
    waiting: list[Any] = list(params.values())
    values = characters = 0
    while waiting and values <= MAX_PARAM_VALUES and characters <= MAX_PARAM_CHARACTERS:
        value = waiting.pop()
        values += 1
        if isinstance(value, dict):
            characters += sum(map(len, value))
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str):
            characters += len(value)
        elif isinstance(value, int) and not _INTEGERS[0] <= value <= _INTEGERS[1]:
            problems["must have integers of at most 64 bits"] = None
    if values > MAX_PARAM_VALUES or characters > MAX_PARAM_CHARACTERS:
        problems[f"must hold at most {MAX_PARAM_VALUES} values and {MAX_PARAM_CHARACTERS} characters"] = None
    if problems:
        raise ValueError("; ".join(problems))
    return params


class CypherInput(ToolInput):
    """Arguments of query_cypher."""

    board_id: BoardId
    cypher: Annotated[
        str,
        Field(min_length=1, description="One query that reads, at most 16 KiB, such as MATCH (d:Decision) RETURN d.title LIMIT 10."),
        AfterValidator(not_blank),
    ]
    params: Annotated[
        dict[str, Any],
        Field(default_factory=dict, max_length=MAX_PARAMS, description="Values for $name in the query: JSON, integers of at most 64 bits."),
        AfterValidator(_storable),
    ]


class CypherOutput(Answer):
    """Answer of query_cypher."""

    columns: list[str]
    rows: list[list[Annotated[Any, Field(description="A value: null, boolean, number, text, list, map, node, relationship or path.")]]]
    row_count: int
    elapsed_ms: int
    truncated: bool = False
    notices: Annotated[list[str], Field(default_factory=list)]


def _query(caller: Caller, given: CypherInput, services: Services) -> Mapping[str, Any]:
    found = query_cypher(caller, given.board_id, given.cypher, given.params, services)
    answer: dict[str, Any] = {
        "columns": list(found.columns),
        "rows": found.rows,
        "row_count": len(found.rows),
        "elapsed_ms": found.elapsed_ms,
    }
    if found.notices:
        answer["notices"] = list(found.notices)
    return truncated_if(found.truncated, answer)


TOOL = Tool(
    "query_cypher",
    "Query in openCypher",
    "Run one read-only openCypher query on a board: MATCH, OPTIONAL MATCH, WHERE, WITH, UNWIND, CALL { }, UNION, RETURN. Nodes carry their "
    "type as label (Decision, Bug …) and id, title, body and the attributes that schema_info lists as properties; relationships have the "
    "types of schema_info. No relationship is walked twice in one MATCH; a path has at most 20 of them. Without a LIMIT 1,000 rows come, "
    "with one up to 10,000, and truncated says that there were more. A name that the board does not have is null, matches nothing, and is "
    "told in notices: read them before you trust an empty answer. Put values into params and write $name. EXPLAIN or PROFILE before the "
    "query shows its plan. The other tools answer common questions faster. Returned nodes count as used.",
    "kg.power.cypher",
    hints(read_only=True, idempotent=True),
    CypherInput,
    CypherOutput,
    _query,
)
