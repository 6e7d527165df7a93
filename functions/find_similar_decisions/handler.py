"""find_similar_decisions: decisions that mean nearly the same. Reads the graph and the vectors; embeds. Writes nothing."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("find_similar_decisions")
