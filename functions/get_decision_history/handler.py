"""get_decision_history: what was decided about a topic, in order of time. Reads the graph and the vectors; embeds. Writes nothing."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("get_decision_history")
