"""Figures of a run beside those that the published analysis itself computed of the same logs."""
