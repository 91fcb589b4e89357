"""The functions of chainmark: the command line and notebooks call these, and nothing else does the work."""
