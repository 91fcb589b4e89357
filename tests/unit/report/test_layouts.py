"""Every result with a layout exists, and so does the function that lays it out."""

from __future__ import annotations

from importlib import import_module

import pytest
from pydantic import BaseModel

from chainmark.report.layouts import LAYOUTS


@pytest.mark.parametrize(("result", "function"), LAYOUTS.items())
def test_a_layout_names_a_result_and_the_function_of_its_module(result: str, function: str) -> None:
    module, _, name = result.rpartition(".")
    assert issubclass(getattr(import_module(f"chainmark.{module}"), name), BaseModel)
    assert callable(getattr(import_module(f"chainmark.report.{function}"), function))
