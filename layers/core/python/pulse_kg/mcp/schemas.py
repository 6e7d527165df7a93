"""JSON Schemas of the tools' models, in the subset that every client and gateway reads.

Everything is written in place: no `$ref`, no titles, and an argument that may be left out is simply not required.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a tool's arguments: null is not offered for what may be left out."""
    return _root(_plain(model.model_json_schema(mode="validation"), {}, nullable=False))


def output_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a tool's answer."""
    return _root(_plain(model.model_json_schema(mode="serialization"), {}, nullable=True))


def _root(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": schema.pop("properties", {}), **{k: v for k, v in schema.items() if k != "type"}}


def _plain(schema: Any, defs: dict[str, Any], *, nullable: bool) -> Any:
    if isinstance(schema, list):
        return [_plain(item, defs, nullable=nullable) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = dict(schema)
    defs = defs | schema.pop("$defs", {})
    if "$ref" in schema:
        target = defs[schema.pop("$ref").rpartition("/")[2]]
        return _plain({**target, **schema}, defs, nullable=nullable)
    options = schema.get("anyOf")
    if options and {"type": "null"} in options:
        rest = [o for o in options if o != {"type": "null"}]
        if len(rest) == 1:
            only = _plain(rest[0], defs, nullable=nullable)
            schema.pop("anyOf")
            if nullable and "type" in only:
                only["type"] = [only["type"], "null"]
                if "enum" in only:
                    only["enum"] = [*only["enum"], None]
            schema = {**only, **{k: v for k, v in schema.items() if k not in {"default", "title"} or (k == "default" and v is not None)}}
            return {k: v for k, v in schema.items() if k != "title"}
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "properties":
            out[key] = {name: _plain(sub, defs, nullable=nullable) for name, sub in value.items()}
        elif key in {"default", "enum", "const", "examples", "required"}:
            out[key] = value
        else:
            out[key] = _plain(value, defs, nullable=nullable)
    return out
