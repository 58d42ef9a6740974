"""The repository as the architecture tests see it: what git tracks, parsed."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
DYNAMIC = frozenset({"import_module", "__import__"})


@dataclass(frozen=True)
class Source:
    """A Python file: its path from the root of the repository, and its text."""

    path: PurePosixPath
    text: str

    @property
    def tree(self) -> ast.Module:
        """The parsed text."""
        return ast.parse(self.text, str(self.path))

    @property
    def package(self) -> tuple[str, ...]:
        """The dotted name of the folder that holds the file; `shared` is an import root."""
        parts = self.path.parts[:-1]
        return parts[1:] if parts[:1] == ("shared",) else parts


@dataclass(frozen=True)
class Import:
    """A module, or a name in a module, that a file imports, and the line."""

    name: str
    line: int


@cache
def tracked() -> tuple[PurePosixPath, ...]:
    """Every file in git's index that is there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    paths = (PurePosixPath(name) for name in listed.stdout.split("\0") if name)
    return tuple(path for path in paths if (ROOT / path).is_file())


@cache
def python_sources() -> tuple[Source, ...]:
    """Every tracked Python file."""
    return tuple(
        Source(path, (ROOT / path).read_text("utf-8")) for path in tracked() if path.suffix == ".py"
    )


def imports(source: Source) -> Iterator[Import]:
    """All that a file imports, wherever in it: relative, for type checkers only, by a literal name.

    `from a import b` counts as `a.b`: b may be a module.
    """
    for node in ast.walk(source.tree):
        match node:
            case ast.Import(names=names):
                yield from (Import(alias.name, node.lineno) for alias in names)
            case ast.ImportFrom(names=names):
                base = _absolute(source, node)
                yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in names)
            case ast.Call(
                func=ast.Attribute(attr="import_module")
                | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield Import(name, node.lineno)


def _absolute(source: Source, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    above = source.package[: len(source.package) - (node.level - 1)]
    return ".".join((*above, *filter(None, [node.module])))


def is_standard(name: str) -> bool:
    """Whether a dotted name belongs to the standard library."""
    return name.split(".", maxsplit=1)[0] in sys.stdlib_module_names
