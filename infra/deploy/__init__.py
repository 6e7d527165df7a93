"""Builds the functions' layers, deploys the template to the local emulator, and runs single functions."""
