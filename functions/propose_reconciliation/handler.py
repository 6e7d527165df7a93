"""propose_reconciliation: what would become of each candidate. Reads graph and vectors; embeds; keeps the proposals with the session."""

from pulse_kg.lambda_edge import tool_function

handler = tool_function("propose_reconciliation")
