"""explain_constraint: where a constraint comes from and what broke it. Reads the graph. Writes nothing."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("explain_constraint")
