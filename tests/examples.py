"""Execute the examples in the library's docstrings as written."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import chainmark

# Their examples run real nodes or send requests to a real server.
NEED_NODES = ("run", "experiment", "bisect", "aa", "qualify", "install")
NEED_A_SERVER = ("corpus", "check_corpus")
NEED_A_CLUSTER = ("cluster_check",)


def functions() -> list[str]:
    """The names of all public functions."""
    return [name for name in chainmark.__all__ if inspect.isfunction(getattr(chainmark, name))]


def execute(name: str, **known: Any) -> None:
    """Execute the example of a public function.

    Args:
        name: name of the function.
        known: names that the example may use. The settings `anyhow` are added to those that the example calls `small`:
            a busy machine must not decide the result.

    Raises:
        AssertionError: there is no example, or its output differs from the docstring.
    """
    function = getattr(chainmark, name)
    globs = {"cm": chainmark, **known}
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(function) or "", globs, name, None, None)
    assert test.examples, f"`{name}` has no example"
    first = test.examples[0]
    if "anyhow" in known and first.source.startswith("small = "):
        test.examples.insert(1, doctest.Example("small.update(anyhow)\n", "", lineno=first.lineno))
    outputs: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=outputs.append)
    assert result.failed == 0, "".join(outputs)
