"""Which examples the property tests try; loaded as a pytest plugin by every conftest."""

from __future__ import annotations

import os

from hypothesis import Phase, settings

# The same examples every time: a change is judged by itself, not by what a random search happened to find that day.
# `HYPOTHESIS_PROFILE=search` looks for new ones.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None, print_blob=True)
# A fault is found as soon as one example fails: `make mutants` needs no smaller one.
settings.register_profile("mutants", derandomize=True, deadline=None, phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
