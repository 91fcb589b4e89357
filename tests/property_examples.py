"""The number and choice of examples in the property tests; every conftest loads it as a pytest plugin."""

from __future__ import annotations

import os

from hypothesis import Phase, settings

# The examples are fixed: the result depends on the change under test, and not on a random search.
# `HYPOTHESIS_PROFILE=search` looks for new examples.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None, print_blob=True)
# One failing example is enough to detect a fault: `make mutants` needs no minimal example.
settings.register_profile("mutants", derandomize=True, deadline=None, phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
