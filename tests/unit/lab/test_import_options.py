"""Options of an import that its source has no use for: none is dropped silently."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress, Silent
from chainmark.lab.importing import Importer
from chainmark.lab.protocols import IMPORT_OPTIONS, Imported, ImportRequest
from chainmark.store.runs import Store
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.base import load_system

from tests.unit.lab.line_system import CATALOGUE, LineProfile


class _Reached(Exception):  # noqa: N818 - not an error
    """The import began."""


@dataclass
class PlainImports:
    """Reads a file without any option."""

    name: str = "line"
    title: str = "Line"

    def catalogue(self) -> object:
        """One of another system."""
        return CATALOGUE

    def profile(self, content: object) -> LineProfile:
        """It has none."""
        return LineProfile()

    def ingest(self, order: ImportRequest, run: UnfinishedRun, progress: Progress) -> Imported:
        """Reached only if all options are accepted."""
        raise _Reached


@dataclass
class ImportsWithGenesis(PlainImports):
    """The same with a genesis file, which is an option of its own."""

    def import_options(self, order: ImportRequest) -> set[str]:
        """The only one."""
        return {"genesis"}


def _import(system: object, tmp_path: Path, **options: object) -> None:
    own = {field.name for field in fields(ImportRequest)}
    further = {name: value for name, value in options.items() if name not in own}
    known = {name: value for name, value in options.items() if name in own}
    order = ImportRequest(source=tmp_path / "log", **known, options=further)  # type: ignore[arg-type]
    Importer(Store(tmp_path / "store"), system).make_all(order, Silent())  # type: ignore[arg-type]


GIVEN: dict[str, object] = {
    "settings": ("a=1",),
    "filters": (),  # `--no-filters` is a choice, too
    "exclude": ("node-1",),
    "keep_events": True,
    "published_rules": True,
    "begin_ns": 1,
}


OWN = {"genesis": Path("genesis.json"), "at_height": 7}


@pytest.mark.parametrize("name", [*IMPORT_OPTIONS, *OWN])
def test_an_option_without_effect_is_refused_before_anything_is_read(name: str, tmp_path: Path) -> None:
    option = IMPORT_OPTIONS.get(name) or f"--{name.replace('_', '-')}"
    with pytest.raises(UsageError, match=f"`{option}` has no effect") as caught:
        _import(PlainImports(), tmp_path, **{name: {**GIVEN, **OWN}[name]})
    assert caught.value.hint == "omit it"


def test_the_options_of_a_source_are_accepted_and_named(tmp_path: Path) -> None:
    with pytest.raises(_Reached):
        _import(ImportsWithGenesis(), tmp_path, genesis=OWN["genesis"], version="1.0", threads=2)
    with pytest.raises(UsageError) as caught:
        _import(ImportsWithGenesis(), tmp_path, genesis=OWN["genesis"], exclude=GIVEN["exclude"])
    assert caught.value.hint == "omit it; options for this source: `--genesis`"


def test_every_option_that_decides_the_result_is_checked() -> None:
    """A new field of the request must be added to the table, or it would be dropped silently."""
    free = {"source", "version", "threads", "part", "end_ns", "machines", "options"}
    assert {field.name for field in fields(ImportRequest)} - free == set(IMPORT_OPTIONS)


def test_logs_accept_what_a_published_page_does_not(tmp_path: Path) -> None:
    """The genesis file of a cluster is needed to read its logs; a page of tables has no use for one."""
    page = tmp_path / "page.md"
    page.write_text("no table\n", encoding="utf-8")
    with pytest.raises(UsageError, match="`--genesis` has no effect"):
        Importer(Store(tmp_path / "store"), load_system("mesh")).make_all(  # type: ignore[arg-type]
            ImportRequest(source=page, options={"genesis": page}), Silent()
        )
    with pytest.raises(UsageError) as caught:
        Importer(Store(tmp_path / "store"), load_system("cardano")).make_all(  # type: ignore[arg-type]
            ImportRequest(source=tmp_path / "none", options={"genesis": page}), Silent()
        )
    assert "has no effect" not in caught.value.message


def test_a_path_that_is_not_utf_8_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """A manifest names what was read, and is UTF-8."""
    order = ImportRequest(source=tmp_path / "log\udcff", options={})
    with pytest.raises(UsageError, match=r"log\\xff` is not UTF-8"):
        Importer(Store(tmp_path / "store"), load_system("cardano")).make_all(order, Silent())  # type: ignore[arg-type]
    assert not (tmp_path / "store").exists()
