"""The column types of a data frame at a module's interface: defined once, checked there."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, get_args

import polars as pl
from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import InternalError

Schema = Mapping[str, type[pl.DataType] | pl.DataType]
_KEY_KINDS = (pl.String, pl.Enum, pl.Categorical)


_COLUMN_TYPES = {bool: pl.Boolean, int: pl.Int64, float: pl.Float64, str: pl.String}


def column_type(annotation: Any) -> type[pl.DataType]:
    """The type of a column with values of a plain type or some literals of it, with or without None."""
    options = [argument for argument in get_args(annotation) if argument is not NoneType] or [annotation]
    kinds = {option if isinstance(option, type) else type(option) for option in options}
    if len(kinds) != 1 or (kind := kinds.pop()) not in _COLUMN_TYPES:
        raise InternalError(f"no column can hold {annotation}")
    return _COLUMN_TYPES[kind]


def schema_of(model: type[BaseModel]) -> Schema:
    """The columns of a table whose rows are of this model."""
    return {name: column_type(field.annotation) for name, field in model.model_fields.items()}


def check_schema(what: str, data_types: Mapping[str, pl.DataType], stated: Schema) -> None:
    """Compare the existing columns with the defined ones; their order does not matter.

    Args:
        what: name of the rows, in the plural: "events of blocks".
        data_types: a frame's schema, or that of a Parquet file.

    Raises:
        InternalError: a column is missing, is of another type, or is not defined.
    """
    for name, kind in stated.items():
        _check_column(what, name, data_types.get(name), kind)
    unknown = next((name for name in data_types if name not in stated), None)
    if unknown is not None:
        raise InternalError(f"the {what} have the column `{unknown}`, which is not in the schema")


def check_samples(catalogue: Catalogue, population_id: str, data_types: Mapping[str, pl.DataType]) -> None:
    """Compare samples with the catalogue: the population's keys, and f64 columns for its metrics.

    A metric without a column was not measured, which is not an error.

    Raises:
        InternalError: the population is unknown, a key is missing, a column is not a metric, or one is not f64.
    """
    rows = f"samples of `{population_id}`"
    population = next((item for item in catalogue.populations if item.id == population_id), None)
    if population is None:
        raise InternalError(f"there are {rows}, but the catalogue of {catalogue.system} has no such population")
    for key in population.keys:
        kind = data_types.get(key)
        if key == population.time_key:
            _check_column(rows, key, kind, pl.Float64)
        elif kind is None or not (kind.is_integer() or kind in _KEY_KINDS):
            raise InternalError(f"the key `{key}` of the {rows} is {kind or 'missing'}, not an integer or a text")
    metrics = {metric.id for metric in catalogue.metrics_of(population_id)}
    for name, kind in data_types.items():
        if name in population.keys:
            continue
        if name not in metrics:
            raise InternalError(
                f"the {rows} have the column `{name}`, which is neither a key nor a metric of the population"
            )
        _check_column(rows, name, kind, pl.Float64)


def _check_column(what: str, name: str, data_type: pl.DataType | None, stated: type[pl.DataType] | pl.DataType) -> None:
    if data_type is None:
        raise InternalError(f"the {what} lack the column `{name}`")
    if data_type != stated:
        raise InternalError(f"the column `{name}` of the {what} is {data_type}, not {stated}")
