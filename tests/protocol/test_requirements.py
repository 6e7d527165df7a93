"""Every requirement has a test."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.protocol.requirements import all_ids, expand


def test_every_requirement_is_named_by_a_test() -> None:
    named = {requirement for path in Path(__file__).parent.glob("test_*.py") for requirement in _named_in(path)}
    assert all_ids() - named == set()


def test_no_test_names_an_unknown_requirement() -> None:
    named = {requirement for path in Path(__file__).parent.glob("test_*.py") for requirement in _named_in(path)}
    assert named - all_ids() == set()


def _named_in(path: Path) -> Iterator[str]:
    """The arguments of all requirement markers in a file, read from its source so that a partial run sees them too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
            for argument in node.args:
                assert isinstance(argument, ast.Constant), f"{path.name}:{node.lineno}: a requirement is a literal"
                yield from expand(str(argument.value))
