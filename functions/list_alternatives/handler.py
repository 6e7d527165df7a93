"""list_alternatives: what was considered and discarded. Reads the graph. Writes nothing."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("list_alternatives")
