"""What chainmark can do, as functions: the command line and notebooks call these, and nothing else does the work."""
