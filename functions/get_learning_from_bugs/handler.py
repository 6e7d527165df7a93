"""get_learning_from_bugs: what was learned from bugs in an area. Reads the graph and the vectors; embeds. Writes nothing."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("get_learning_from_bugs")
