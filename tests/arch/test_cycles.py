"""No module of the code leads back to itself by its imports, those for type checkers included."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import PurePosixPath

import pytest

from tests.arch.sources import Source, imports, python_sources

# Where the modules are whose graph is looked at; tests are nobody's import.
PARTS = frozenset({"shared", "functions", "local", "infra", "tools", "examples"})


def module_of(source: Source) -> str:
    """The dotted name that a file is imported by."""
    stem = source.path.stem
    return ".".join(source.package if stem == "__init__" else (*source.package, stem))


def import_graph(sources: Iterable[Source]) -> Mapping[str, set[str]]:
    """For each module the modules that it imports, wherever in it.

    Of `from a import b` that is a.b if it is a module, else a. That a.b loads a as well counts for
    nothing: a package would lead back to itself whenever it names what is in it.
    """
    by_module = {module_of(source): source for source in sources}
    return {
        module: {
            target
            for found in imports(source)
            if (target := _known(found.name, by_module)) is not None
        }
        for module, source in by_module.items()
    }


def _known(name: str, modules: Mapping[str, Source]) -> str | None:
    if name in modules:
        return name
    above = name.rpartition(".")[0]
    return above if above in modules else None


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules of one cycle, in the order of their imports, the first one again at the end."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = list(reversed(error.args[1]))
        return found
    return []


def test_no_module_leads_back_to_itself() -> None:
    graph = import_graph(one for one in python_sources() if one.path.parts[0] in PARTS)
    assert graph["stepwell_engine.service.worker.advance"]
    assert cycle(graph) == []


def sources(files: Mapping[str, str]) -> list[Source]:
    """Files of the engine, by their path in it."""
    root = PurePosixPath("shared/stepwell_engine")
    return [Source(root / path, text) for path, text in files.items()]


BAD: list[dict[str, str]] = [
    {"a.py": "from stepwell_engine import a"},
    {"a.py": "import stepwell_engine.b", "b.py": "import stepwell_engine.a"},
    {"a.py": "from stepwell_engine.b import B", "b.py": "from stepwell_engine.a import A"},
    {"a.py": "from stepwell_engine.b import B", "b.py": "from .a import A"},
    {
        "a.py": "from stepwell_engine.b import B",
        "b.py": "if TYPE_CHECKING:\n    from stepwell_engine.a import A",
    },
    {"a.py": "from stepwell_engine.b import B", "b.py": "def f():\n    import stepwell_engine.a"},
    {
        "a.py": "from stepwell_engine import b",
        "b.py": "from stepwell_engine.c.d import D",
        "c/d.py": "from stepwell_engine.a import A",
    },
    {
        "c/__init__.py": "from stepwell_engine.c.d import D",
        "c/d.py": "from stepwell_engine.c import E",
    },
]


@pytest.mark.parametrize("files", BAD)
def test_a_cycle_is_found(files: Mapping[str, str]) -> None:
    found = cycle(import_graph(sources(files)))
    assert found[0] == found[-1]
    assert len(found) == len(files) + 1


def test_a_cycle_is_named_in_the_order_of_its_imports() -> None:
    files = {
        "a.py": "from stepwell_engine.b import B",
        "b.py": "from stepwell_engine.c import C",
        "c.py": "from stepwell_engine.a import A",
    }
    graph = import_graph(sources(files))
    found = cycle(graph)
    assert all(later in graph[earlier] for earlier, later in pairwise(found))


def test_what_two_modules_share_is_no_cycle() -> None:
    files = {
        "c/__init__.py": "from stepwell_engine.c.d import D\nfrom stepwell_engine.c.e import E",
        "c/d.py": "from stepwell_engine.c.e import E\nimport json",
        "c/e.py": "",
        "a.py": "from stepwell_engine.c import D\nfrom stepwell_engine.c.d import D as F",
    }
    assert cycle(import_graph(sources(files))) == []
