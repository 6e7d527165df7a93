"""add_node_candidate: adds one statement to an open session. Reads boards; writes sessions. Each call adds one."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("add_node_candidate")
