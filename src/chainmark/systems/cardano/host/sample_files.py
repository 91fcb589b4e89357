"""Block samples in the formats of blockperf and openblockperf: written from a run, and read from their output.

Both give delays in whole milliseconds, cut towards zero. blockperf shows an adoption before the end of the fetch as 0;
openblockperf keeps it negative, like chainmark.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from chainmark.core.errors import ChainmarkError, UsageError
from chainmark.core.storage import storage_errors

_HINT = "give JSON lines, a JSON list or a CSV file with the field names of blockperf or openblockperf"


def _named(*names: str) -> Any:
    return Field(validation_alias=AliasChoices(*names))


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) else value


Port = Annotated[str, BeforeValidator(_as_text)]


class BlockSample(BaseModel):
    """One block as a host received it; delays are ms.

    Each field can be read by its name here, which is openblockperf's, and by blockperf's.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    block_hash: str = _named("block_hash", "blockHash")
    block_number: int = _named("block_number", "blockNo")
    slot: int = _named("slot", "slotNo")
    block_size: int = _named("block_size", "blockSize")
    header_delta: int = _named("header_delta", "headerDelta")
    block_request_delta: int = _named("block_request_delta", "blockReqDelta")
    block_response_delta: int = _named("block_response_delta", "blockRspDelta")
    block_adopt_delta: int = _named("block_adopt_delta", "blockAdoptDelta")
    header_remote_addr: str = _named("header_remote_addr", "headerRemoteAddr")
    header_remote_port: Port = _named("header_remote_port", "headerRemotePort")
    block_remote_addr: str = _named("block_remote_addr", "blockRemoteAddress")
    block_remote_port: Port = _named("block_remote_port", "blockRemotePort")


# blockperf's names of the fields above, which have openblockperf's names.
BLOCKPERF_NAMES: Mapping[str, str] = {
    name: str(field.validation_alias.choices[1])
    for name, field in BlockSample.model_fields.items()
    if isinstance(field.validation_alias, AliasChoices)
}


def read_samples(path: Path) -> list[BlockSample]:
    """The samples of a file that blockperf or openblockperf wrote; for a duplicate block the first one.

    Raises:
        UsageError: it is another kind of file.
        EnvironmentFailure: it cannot be read.
    """
    with storage_errors(path):
        if not path.is_file():
            raise UsageError(f"there is no file `{path}`", "give the samples that blockperf or openblockperf wrote")
        text = path.read_bytes().decode("utf-8", errors="replace")
    block_samples: dict[str, BlockSample] = {}
    for number, record in enumerate(_records(text, path), start=1):
        try:
            sample = BlockSample.model_validate(record)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"]) or "it"
            raise UsageError(f"sample {number} of {path} is invalid: {field}: {first['msg']}", _HINT) from error
        block_samples.setdefault(sample.block_hash.strip('"'), sample)
    if not block_samples:
        raise UsageError(f"{path} contains no samples", _HINT)
    return list(block_samples.values())


def is_samples(path: Path) -> bool:
    """Whether a file is one of blockperf's or openblockperf's; false also for an unreadable file."""
    try:
        return bool(read_samples(path))
    except ChainmarkError:
        return False


def _records(text: str, path: Path) -> Iterable[Any]:
    begin = text.lstrip()[:1]
    try:
        if begin == "[":
            return list(json.loads(text))
        if begin == "{":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        return list(csv.DictReader(io.StringIO(text)))
    except ValueError as error:
        raise UsageError(f"{path} cannot be read as block samples: {error}", _HINT) from error


def written(samples: Iterable[BlockSample], suffix: str) -> bytes:
    """Samples as a file: ``.csv`` by blockperf's names, ``.jsonl`` by openblockperf's.

    Raises:
        UsageError: the suffix is unknown.
    """
    rows = [sample.model_dump() for sample in samples]
    if suffix == ".jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if suffix != ".csv":
        raise UsageError(f"samples cannot be written as `{suffix}`", "use a file name that ends in .csv or .jsonl")
    text = io.StringIO()
    writer = csv.DictWriter(text, list(BLOCKPERF_NAMES.values()), lineterminator="\n")
    writer.writeheader()
    writer.writerows({BLOCKPERF_NAMES[name]: value for name, value in row.items()} for row in rows)
    return text.getvalue().encode()
