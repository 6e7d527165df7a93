"""query_natural: a question in plain words. Reads the graph and the vectors; embeds. Counts hits."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("query_natural")
