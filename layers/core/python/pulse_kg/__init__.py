"""Pulse KG: the memory of what a software team decided, for the agents that work for it."""

__version__ = "0.1.0"
