"""query_global: a search over all boards that are granted. Reads the graph and the vectors; embeds. Writes nothing."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("query_global")
