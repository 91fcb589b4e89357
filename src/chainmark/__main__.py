"""``python -m chainmark``: the command, by the interpreter of one's choice."""

from chainmark.cli import main

main()
