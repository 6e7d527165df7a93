"""Sample data of the demo."""
