"""commit_consolidation: writes the whole session at once. Writes every store; embeds. Repeating it gives the first answer."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("commit_consolidation")
