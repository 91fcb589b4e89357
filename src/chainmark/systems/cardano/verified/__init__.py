"""Figures of a run compared with those that the published analysis itself computed from the same logs."""
