"""get_similar_nodes: the board's nodes that look like a candidate. Reads sessions, the graph and the vectors; embeds. Writes nothing."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("get_similar_nodes")
