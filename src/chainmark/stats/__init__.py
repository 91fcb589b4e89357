"""Pure numeric functions on arrays: centiles, block bootstrap, intervals, multiple tests, power, effect sizes.

No function depends on a system, a run or a file; only `summarise` reads frames, and uses a metric only by its
catalogue.
"""
