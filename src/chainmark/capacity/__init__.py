"""How much load an API sustains: steps of load, the SLA that judges them, and the search for the capacity.

Common to every HTTP API and independent of any system. docs/concepts/capacity.md explains the rules.
"""
