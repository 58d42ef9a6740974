"""The reference model says what the specification says, not what the engine does."""

from pathlib import PurePosixPath

import pytest

from tests.arch.sources import Source, imports, is_standard, python_sources

# The model, and the plain data that it is given and gives.
MODEL = tuple(PurePosixPath(f"tests/model/{name}.py") for name in ("reference", "story", "terms"))
OWN = ("tests.model.story.", "tests.model.terms.")


def foreign(source: Source) -> list[str]:
    """What a part of the model imports beside the standard library and its own data."""
    return [
        one.name
        for one in imports(source)
        if not is_standard(one.name) and not one.name.startswith(OWN)
    ]


def test_the_model_knows_nothing_of_the_engine() -> None:
    parts = [source for source in python_sources() if source.path in MODEL]
    assert len(parts) == len(MODEL)
    assert [name for source in parts for name in foreign(source)] == []


@pytest.mark.parametrize(
    "line",
    [
        "from stepwell_engine import limits",
        "import stepwell_engine.core.run.retry",
        "from tests.model.stage import Stage",
        "import hypothesis",
    ],
)
def test_what_the_model_may_not_import_is_found(line: str) -> None:
    assert len(foreign(Source(MODEL[0], f"{line}\n"))) == 1
