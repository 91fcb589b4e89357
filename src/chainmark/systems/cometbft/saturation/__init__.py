"""Saturation tests of CometBFT: connections × rate, processed against offered, and where a version stops keeping up."""
