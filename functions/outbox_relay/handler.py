"""outbox_relay: publishes the events of commits whose own process did not. By schedule. Safe to run twice at once."""

from pulse_kg.lambda_edge.jobs import relay_function

handler = relay_function()
