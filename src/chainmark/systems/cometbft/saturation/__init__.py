"""Saturation tests of CometBFT: connections × rate, processed against offered, and a version's saturation load."""
