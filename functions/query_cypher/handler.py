"""query_cypher: a read-only query in openCypher. Reads the graph; counts calls and hits."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("query_cypher")
