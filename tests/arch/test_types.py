"""What the check of types reads of CDK: all that the code uses, so nothing is Any unnoticed."""

import re
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.arch.sources import ROOT, imports, python_sources

NAME: Final = "aws_cdk"
# As CDK writes what a module's types refer to.
REFERENCE: Final = re.compile(r"\n    import (aws_cdk\.[\w.]+) as ")


def source(module: str) -> Path | None:
    """The file of a module of CDK; None if the name is no module."""
    spec = find_spec(NAME)
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin).parent.joinpath(*module.split(".")[1:], "__init__.py")
    return file if file.is_file() else None


def used() -> Iterator[str]:
    """CDK itself, and its modules that the code imports."""
    yield NAME
    for file in (file for file in python_sources() if NAME in file.text):
        for one in imports(file):
            if one.name.startswith(f"{NAME}."):
                yield from (one.name, one.name.rpartition(".")[0])  # a module, or a name in one


def read_by_mypy() -> set[str]:
    """The modules of CDK whose imports mypy follows; `interfaces` has a line for all of its own."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    (listed,) = [one for one in settings["overrides"] if one["follow_imports"] == "normal"]
    return {name for name in listed["module"] if not name.endswith(".*")}


def test_the_check_of_types_reads_all_of_cdk_that_the_code_uses_and_no_more() -> None:
    needed: set[str] = set()
    todo = list(used())
    while todo:
        module = todo.pop()
        file = source(module)
        if file is None or module in needed:
            continue
        needed.add(module)
        todo += REFERENCE.findall(file.read_text("utf-8"))
    interfaces = {name for name in needed if name.startswith(f"{NAME}.interfaces")}
    assert interfaces
    assert read_by_mypy() == needed - interfaces
