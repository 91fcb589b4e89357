"""``python -m chainmark.cli``, the same as the ``chainmark`` command."""

from chainmark.cli.app import main

main()
