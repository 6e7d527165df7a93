"""mcp: the MCP endpoint, and /healthz. Checks the key, answers the protocol, and calls the tool's own function with the caller's key."""

from pulse_kg.lambda_edge.mcp import mcp_function

handler = mcp_function()
