"""The results in the JSON of documents, for tests that need nothing else."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import BaseModel

_Result = TypeVar("_Result", bound=BaseModel)


def result_in(text: str, model: type[_Result]) -> _Result:
    """The result in a document's JSON, without the verdict and the cases that the document adds."""
    content = json.loads(text)
    added = {"verdict", "suites"} - set(model.model_fields)
    return model.model_validate_json(json.dumps({key: value for key, value in content.items() if key not in added}))
