"""find_contradictions: statements that contradict each other. Reads the graph. Writes nothing."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("find_contradictions")
