"""Rewrite the golden files: ``python -m tests.golden``."""

from __future__ import annotations

import shutil

from tests.golden.outputs import RETAINED, outputs


def main() -> None:
    """Write every file again, and remove files that nothing generates any more."""
    texts = {name: make() for name, make in outputs().items()}
    shutil.rmtree(RETAINED, ignore_errors=True)
    for name, text in texts.items():
        path = RETAINED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
