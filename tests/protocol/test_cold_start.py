"""What a Lambda loads to answer: the protocol code pulls in no framework."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.protocol.processes import ENVIRONMENT

HEAVY = {"starlette", "uvicorn", "anyio", "asyncio", "pydantic", "mcp", "mcp_types", "numpy", "onnxruntime"}


@pytest.mark.parametrize("module", ["pulse_kg.mcp.protocol", "pulse_kg.mcp.routes", "pulse_kg.mcp.stdio"])
def test_the_pure_protocol_code_loads_no_framework(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY.isdisjoint(loaded)
