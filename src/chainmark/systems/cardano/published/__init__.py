"""The published reports of the benchmarks: read, made from runs, and laid out in both of their styles."""
