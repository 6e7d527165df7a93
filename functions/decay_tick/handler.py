"""decay_tick: folds counted hits into the nodes and computes their relevance for one time. By schedule. Safe to start twice at once."""

from pulse_kg.lambda_edge.jobs import tick_function

handler = tick_function()
