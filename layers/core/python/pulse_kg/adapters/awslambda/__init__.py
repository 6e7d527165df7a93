"""What runs in a function of its own: the tools behind the MCP function, and the embedding model."""
