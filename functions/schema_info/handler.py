"""schema_info: types, relationships and limits of a board. Reads boards and the vectors' index. Writes nothing."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("schema_info")
