"""What the use cases need of the world; each Protocol's docstring is its contract."""
