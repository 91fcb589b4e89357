"""Pure numeric functions on arrays: centiles, block bootstrap, intervals, multiple tests, power, effect sizes.

Nothing here knows a system, a run or a file; `summarise` alone reads frames, and knows a metric only by its catalogue.
"""
