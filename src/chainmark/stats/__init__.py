"""Pure numeric functions: centiles, block bootstrap, intervals. They know arrays, not runs."""
