"""The command line: one file per command; arguments, one call of the API, printing."""

import gc
import os
import sys

# Statistics use processes of their own. The threads of BLAS wait for each other by spinning, which on a busy machine
# takes many times as long as the products themselves.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> None:
    """Run the command line and exit with its code; a request for the version loads nothing else."""
    from chainmark.cli.pipes import survive_closed_pipes

    survive_closed_pipes()
    # A report consists of a million small objects that live until it is written: garbage collection after every 700
    # new ones takes a twentieth of its time.
    gc.set_threshold(100_000, 50, 100)
    try:
        if sys.argv[1:] == ["--version"]:
            from chainmark.core.tool import tool_version

            sys.stdout.write(f"chainmark {tool_version()}\n")
            sys.exit(0)
        if instruction := os.environ.get("_CHAINMARK_COMPLETE"):
            from chainmark.cli.completion import complete

            code = complete(instruction)
            if code is not None:
                sys.exit(code)
        from chainmark.cli.app import main as run

        run()
    except SystemExit as ended:
        if "_CHAINMARK_COMPLETE" not in os.environ:
            raise
        sys.stdout.flush()
        # A shell waits for this at every Tab, and Python's finalisation takes a seventh of the time.
        os._exit(int(ended.code or 0))
    finally:
        sys.stdout.flush()  # now, while a closed pipe can still determine the exit code
