"""get_related_context: what lies around a node. Reads the graph. Writes nothing."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("get_related_context")
