"""The key facts in runs' manifests, next to each other."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.manifest import Manifest
from chainmark.core.side_by_side import FactRow


def facts_beside(manifests: Sequence[Manifest]) -> list[FactRow]:
    """Every fact with its value in each manifest, in the order of the first that has it; "—" if one lacks it."""
    messages = [{fact.label: fact.value for fact in manifest.facts} for manifest in manifests]
    labels = list(dict.fromkeys(label for facts in messages for label in facts))
    return [FactRow(label=label, values=[facts.get(label, units.UNSET) for facts in messages]) for label in labels]
