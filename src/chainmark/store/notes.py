"""A team's notes on its runs: changes of the set-up, and the long-term reference release."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from chainmark.core.epoch import Annotation, Epoch
from chainmark.core.errors import InvalidRunError
from chainmark.core.noted import Noted
from chainmark.store.files import json_bytes, write_bytes
from chainmark.store.paths import NOTES


class Notes(BaseModel):
    """``history.json`` of a store, separate from the runs.

    Attributes:
        epochs: in chronological order.
        anchors: by system, a version or run that later releases are also compared with.
        annotations: notes on runs, in the order of their creation.
    """

    model_config = ConfigDict(extra="forbid")

    epochs: list[Epoch] = []
    anchors: dict[str, str] = {}
    annotations: list[Annotation] = []

    def of(self, run: Noted) -> list[str]:
        """The notes on a run, and its set-up, a clause each."""
        texts = [annotation.text for annotation in self.annotations if annotation.is_about(run)]
        since = [epoch for epoch in self.epochs if epoch.system == run.system and epoch.since <= run.started_at]
        return [*texts, *(f"since {epoch.since[:10]} {epoch.text}" for epoch in since[-1:])]


def read_notes(root: Path) -> Notes:
    """The notes of a store; empty without any.

    Raises:
        InvalidRunError: the file is damaged.
    """
    path = root / NOTES
    try:
        return Notes.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Notes()
    except (OSError, ValueError, ValidationError) as error:
        raise InvalidRunError(
            f"{path} cannot be read ({error})", "repair it, or remove it and add all notes again"
        ) from error


def write_notes(root: Path, notes: Notes) -> None:
    """Replace the notes of a store."""
    ordered = notes.model_copy(update={"epochs": sorted(notes.epochs, key=lambda epoch: (epoch.system, epoch.since))})
    write_bytes(root / NOTES, json_bytes(ordered))
