"""The reports that the benchmarks are published as: read, made of runs, and laid out in both styles they have had."""
