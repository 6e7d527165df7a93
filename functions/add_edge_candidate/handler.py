"""add_edge_candidate: relates two statements of a session or the board. Reads boards and the graph; writes sessions. Each call adds one."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("add_edge_candidate")
