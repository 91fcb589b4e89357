"""How much can an API take? Steps of load, an agreement to judge them by, and the search for the capacity.

Common to every HTTP API: nothing here knows a system. docs/concepts/capacity.md explains the rules.
"""
