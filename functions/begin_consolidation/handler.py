"""begin_consolidation: opens a session for an artifact, unless its content is known. Reads boards and commits; writes sessions, rates."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("begin_consolidation")
