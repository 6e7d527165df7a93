"""abort_consolidation: drops an open session. Writes sessions. Idempotent."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("abort_consolidation")
