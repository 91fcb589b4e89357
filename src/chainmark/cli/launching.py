"""The options of the commands that start nodes."""

from __future__ import annotations

import json
from typing import Any

from chainmark.cli.offered import Offered
from chainmark.cli.options import Expose, NoWait, On, Seed, Settings
from chainmark.systems.offered import LAUNCH


class Launch(Offered):
    """How to make and measure networks; the options of systems are settings of their profiles.

    Args:
        keep_homes: Keep node home directories in the run for debugging.
    """

    command = LAUNCH

    def __init__(
        self,
        settings: Settings = None,
        seed: Seed = 1,
        keep_homes: bool = False,
        no_wait: NoWait = False,
        expose: Expose = None,
        on: On = None,
        **offered: Any,
    ) -> None:
        super().__init__(**offered)
        given = [f"{key}={json.dumps(value)}" for key, value in self.values.items()]
        self.keep_homes = keep_homes
        self.arguments: dict[str, Any] = {
            "settings": [*given, *(settings or [])] or None,
            "seed": seed,
            "keep_homes": keep_homes,
            "no_wait": no_wait,
            "expose": expose,
            "on": on,
        }
