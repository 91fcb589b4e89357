"""``python -m chainmark.cli``, the same as the ``chainmark`` command."""

from chainmark.cli import main

main()
