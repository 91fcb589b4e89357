"""The systems under test, each in a folder of its own, and the capabilities that they may have."""
