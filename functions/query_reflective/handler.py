"""query_reflective: a search with a check of what it found. Reads the graph and the vectors; embeds. Counts hits."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("query_reflective")
