"""What the product does, one file a tool or job; each depends on the domain and the ports only."""
