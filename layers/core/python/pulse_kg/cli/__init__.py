"""The command line: `pulse-kg`. Every module here is imported by the command that needs it, not before."""
