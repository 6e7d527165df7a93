"""verify_grounding: whether an answer is backed by nodes. Reads the graph. Writes nothing."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("verify_grounding")
