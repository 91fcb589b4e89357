"""The type stub of the Rust core matches the compiled module. Otherwise mypy would accept calls that fail."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from chainmark import _native

STUB = Path(_native.__file__).with_name("_native.pyi")
Parameters = list[tuple[str, str, bool]]


def _is_typed_dict(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "TypedDict" for base in node.bases)


_NODES = ast.parse(STUB.read_text(encoding="utf-8")).body
FUNCTIONS = {node.name: node for node in _NODES if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in _NODES if isinstance(node, ast.ClassDef) and not _is_typed_dict(node)}
KEYS = {
    node.name: {ast.unparse(part.target) for part in node.body if isinstance(part, ast.AnnAssign)}
    for node in _NODES
    if isinstance(node, ast.ClassDef) and _is_typed_dict(node)
}


def _members(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}


def _is_property(node: ast.FunctionDef) -> bool:
    return any(isinstance(decorator, ast.Name) and decorator.id == "property" for decorator in node.decorator_list)


def _stated(node: ast.FunctionDef) -> Parameters:
    """Name, keyword-only flag and whether there is a default, of every parameter except `self`."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    first_default = len(positional) - len(arguments.defaults)
    parameters = [(argument.arg, "any", place >= first_default) for place, argument in enumerate(positional)]
    parameters += [
        (argument.arg, "keyword", default is not None)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return [parameter for parameter in parameters if parameter[0] != "self"]


def _compiled(what: object) -> Parameters:
    assert callable(what)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        (name, "keyword" if parameter.kind is keyword else "any", parameter.default is not inspect.Parameter.empty)
        for name, parameter in inspect.signature(what).parameters.items()
        if name not in ("self", "$self")
    ]


def _public(names: list[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def test_the_stub_has_exactly_the_names_of_the_module() -> None:
    assert _public(dir(_native)) == {*FUNCTIONS, *CLASSES}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_parameters_of_the_stub(name: str) -> None:
    assert _compiled(getattr(_native, name)) == _stated(FUNCTIONS[name])


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_members_and_parameters_of_the_stub(name: str) -> None:
    members, stated = getattr(_native, name), _members(CLASSES[name])
    assert _public(dir(members)) == _public(list(stated))
    for member, node in stated.items():
        if member == "__init__":
            assert _compiled(members) == _stated(node)
        elif _is_property(node):
            assert inspect.isgetsetdescriptor(getattr(members, member)), member
        else:
            assert _compiled(getattr(members, member)) == _stated(node), member


def test_dictionaries_have_the_keys_of_the_stub() -> None:
    sent = _native.encode_transaction(1, 10, 250, 1_700_000_000_000_000_000, bytes(16), 1)
    decoded = _native.decode_transaction(sent)
    assert decoded is not None
    assert decoded.keys() == KEYS["DecodedTransaction"]
    load = _native.TransactionLoad(
        targets=["ws://127.0.0.1:9/websocket"], rate_per_connection=1, duration_s=1.0, size_bytes=250, method="sync",
        schedule="even", seed=1, experiment_id=bytes(16), answer_timeout_s=1.0, send_grace_s=0.0,
    )  # fmt: skip
    assert load.progress().keys() == KEYS["LoadProgress"]
