"""How much load does an API sustain? Steps of load, an SLA to judge them by, and the search for the capacity.

Common to every HTTP API: nothing here knows a system. docs/concepts/capacity.md explains the rules.
"""
