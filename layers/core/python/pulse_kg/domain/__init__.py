"""The rules of the graph: pure, without input or output, clock or randomness."""
