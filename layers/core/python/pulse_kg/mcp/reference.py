"""The text of docs/tools.md, made from the tools' own declarations: `python -m pulse_kg.mcp.reference docs/tools.md`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pulse_kg.domain.permissions import FLAGS, PRESETS, effective
from pulse_kg.domain.schema import ENDPOINT_PAIRS, NODE_PREFIXES, NODE_TYPES, REL_TYPES, RESERVED_REL_TYPES, SEARCHABLE_TYPES
from pulse_kg.errors import PulseError
from pulse_kg.mcp.host import TOOL_PREFIX
from pulse_kg.mcp.tools import all_tools
from pulse_kg.mcp.tools.base import Tool

_HEAD = """# The tools

<!-- Made from the declarations: python -m pulse_kg.mcp.reference docs/tools.md -->

In MCP each name begins with `{prefix}`; on the command line and in HTTP routes the prefix may be left out.
Every root schema is closed: an argument that is not listed is refused. Null for an argument that may be left
out means left out.

Errors come as one envelope, `{{"error": {{"code", "status", "message", "details", "retryable", "correlation_id"}}}}`: in MCP as the text
of a result with `isError`, on a direct route with its HTTP status. All problems of an input are in `details.problems`, each with its path.
"""


def reference_page() -> str:
    """The whole page."""
    lines = [_HEAD.format(prefix=TOOL_PREFIX)]
    for tool in all_tools():
        lines += _tool(tool)
    lines += _schema()
    lines += _errors()
    lines += _presets()
    return "\n".join(lines).rstrip() + "\n"


def _tool(tool: Tool[Any]) -> Iterator[str]:
    spec, hints = tool.spec, tool.annotations
    yield f"## {tool.name}\n"
    yield f"{tool.description}\n"
    said = (("reads only", hints.read_only), ("may destroy", hints.destructive), ("may be repeated", hints.idempotent))
    words = ", ".join(f"{name}: {'yes' if value else 'no'}" for name, value in said)
    yield f"Permission `{tool.flag}`. Hints: {words}.\n"
    yield "| argument | type | meaning |"
    yield "|---|---|---|"
    required = spec.input_schema.get("required", [])
    for name, schema in spec.input_schema["properties"].items():
        default = f", default `{json.dumps(schema['default'])}`" if "default" in schema else ""
        kind = _kind(schema) + ("" if name in required else f", optional{default}")
        yield f"| `{name}` | {kind} | {schema.get('description', '')} |"
    yield "\n| answer | type |"
    yield "|---|---|"
    required = spec.output_schema.get("required", [])
    for name, schema in spec.output_schema["properties"].items():
        yield f"| `{name}` | {_kind(schema)}{'' if name in required else ', where it has something to say'} |"
    yield ""


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " \\| ".join("null" if word is None else f"`{word}`" for word in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_kind(schema['items'])}"
    if kind == "object" and schema.get("properties"):
        return "{" + ", ".join(f"`{name}`" for name in schema["properties"]) + "}"
    words = kind if isinstance(kind, str) else " or ".join(kind)
    low, high = schema.get("minimum"), schema.get("maximum")
    return words + (f" {low}..{high}" if low is not None and high is not None else "")


def _schema() -> Iterator[str]:
    yield "## Node types\n"
    yield "| type | id | found by |"
    yield "|---|---|---|"
    for node_type in NODE_TYPES:
        yield f"| {node_type} | `{NODE_PREFIXES[node_type]}_…` | {'meaning' if node_type in SEARCHABLE_TYPES else 'start of the title'} |"
    yield "\n## Relationships\n"
    yield "| relationship | written by | from → to |"
    yield "|---|---|---|"
    for rel_type in REL_TYPES:
        pairs = ENDPOINT_PAIRS[rel_type]
        by_source = {source: [t for s, t in pairs if s == source] for source, _ in pairs}
        shapes = {tuple(targets): [s for s, ts in by_source.items() if ts == targets] for targets in by_source.values()}
        if all(s == t for s, t in pairs):
            ends = "any → the same type"
        else:
            ends = "; ".join(f"{_types(sources)} → {_types(targets)}" for targets, sources in shapes.items())
        yield f"| {rel_type} | {'the deterministic worker' if rel_type in RESERVED_REL_TYPES else 'agents'} | {ends} |"


def _errors() -> Iterator[str]:
    yield "\n## Errors\n"
    yield "| status | code | may be tried again as it is | when |"
    yield "|---|---|---|---|"
    for error in sorted(_leaves(PulseError), key=lambda e: (e.status, e.code)):
        first = (error.__doc__ or "").partition("\n")[0]
        yield f"| {error.status} | `{error.code}` | {'yes' if error.retryable else 'no'} | {first} |"
    yield "| 500 | `internal_error` | no | Something that nobody foresaw; the log has the correlation id. |"


def _leaves(error: type[PulseError]) -> Iterator[type[PulseError]]:
    for sub in error.__subclasses__():
        if sub.__module__ != PulseError.__module__:  # an adapter's own kind of a refusal that is listed
            continue
        below = list(_leaves(sub))
        yield from below or [sub]


def _presets() -> Iterator[str]:
    yield "\n## Presets\n"
    yield "What an agent's preset lets it do; single flags can be added and taken away. What nothing gives is denied.\n"
    groups = ("kg.session", "kg.query", "kg.power", "kg.admin")
    yield f"| preset | {' | '.join(f'`{g}.`' for g in groups)} |"
    yield "|---|---|---|---|---|"
    for preset in PRESETS:
        flags = effective(preset)
        yield f"| {preset} | {' | '.join(_granted(group, flags) for group in groups)} |"


def _granted(group: str, flags: frozenset[str]) -> str:
    every = [f for f in FLAGS if f.startswith(group + ".")]
    given = [f for f in every if f in flags]
    if len(given) in {0, len(every)}:
        return "all" if given else "–"
    missing = [f.rpartition(".")[2] for f in every if f not in flags]
    return "all but " + ", ".join(missing) if len(missing) == 1 else ", ".join(f.rpartition(".")[2] for f in given)


def _types(names: Any) -> str:
    return "any" if len(names) == len(NODE_TYPES) else ", ".join(names)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference_page(), encoding="utf-8")
