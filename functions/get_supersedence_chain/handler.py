"""get_supersedence_chain: what replaced what, up to what is in force. Reads the graph. Writes nothing."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("get_supersedence_chain")
