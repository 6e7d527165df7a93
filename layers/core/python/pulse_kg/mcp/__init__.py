"""The Model Context Protocol edge: revisions, catalogue, envelope, tool host."""
