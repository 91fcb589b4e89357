"""Rewrites the golden files: ``python -m tests.golden``."""

from __future__ import annotations

import shutil

from tests.golden.outputs import KEPT, outputs


def main() -> None:
    """Write every file anew; what nothing makes any more is gone."""
    shutil.rmtree(KEPT, ignore_errors=True)
    for name, make in outputs().items():
        path = KEPT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(make(), encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
