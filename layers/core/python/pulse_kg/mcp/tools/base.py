"""What a tool is, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.host import TOOL_PREFIX, Annotations, ToolSpec
from pulse_kg.mcp.schemas import input_schema, output_schema
from pulse_kg.usecases.services import Services


class Answer(BaseModel):
    """What a tool answers; a field with a default is left out where it has nothing to say."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


InputT = TypeVar("InputT", bound=ToolInput)


@dataclass(frozen=True)
class Tool(Generic[InputT]):
    """A tool.

    Attributes:
        name: Without the prefix.
        title: For people.
        description: For a model.
        flag: The permission it needs.
        annotations: The protocol's hints.
        input_model: Its arguments.
        output_model: Its answer.
        run: From checked arguments to the answer, JSON-ready.
    """

    name: str
    title: str
    description: str
    flag: str
    annotations: Annotations
    input_model: type[InputT]
    output_model: type[Answer]
    run: Callable[[Caller, InputT, Services], Mapping[str, Any]]

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as the catalogue shows it."""
        return ToolSpec(
            name=TOOL_PREFIX + self.name,
            title=self.title,
            description=self.description,
            input_schema=input_schema(self.input_model),
            output_schema=output_schema(self.output_model),
            annotations=self.annotations,
        )

    def __call__(self, caller: Caller, arguments: object, services: Services) -> dict[str, Any]:
        """Checks the arguments, runs the tool, and checks the answer."""
        answer = self.run(caller, self.input_model.read(arguments), services)
        return self.output_model.model_validate(answer).model_dump(mode="json", exclude_unset=True)


def with_warnings(answer: dict[str, Any], warnings: tuple[str, ...]) -> dict[str, Any]:
    """The answer, with warnings where there are any."""
    return {**answer, "warnings": list(warnings)} if warnings else answer


def hints(*, read_only: bool = False, destructive: bool = False, idempotent: bool = False) -> Annotations:
    """The protocol's hints of a tool; no tool of this product reaches outside."""
    return Annotations(read_only, destructive, idempotent, open_world=False)
