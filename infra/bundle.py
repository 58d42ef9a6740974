"""Code as it goes to Lambda: put together from this repository and compiled, without Docker.

Lambda's folders cannot be written to: what is not compiled before is compiled at every cold start.
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_

ROOT: Final = Path(__file__).resolve().parent.parent
PYTHON: Final = "3.13"  # of the functions
UNCOMPILED: Final = (
    f"The code goes to Lambda uncompiled, for there is no Python {PYTHON} here, the version of the "
    f"functions: every cold start takes longer. Put python{PYTHON} on PATH and repeat this."
)

_FUNCTIONS: Final = ROOT / "functions"
_PROBE: Final = (
    "import platform, sys; print(sys.implementation.cache_tag, platform.python_version())"
)
_CACHES: Final = ("__pycache__", "*.py[cod]")


@dataclass(frozen=True)
class Compiler:
    """A Python that compiles for its own version: `3.13.5`."""

    command: str
    version: str

    def compile(self, folder: Path, unpacked_at: str) -> None:
        """Compile all below a folder that will be unpacked at `unpacked_at`.

        The same sources give the same bytes. They count whatever time the sources have, which is
        another one in the archive.
        """
        command = [self.command, "-I", "-m", "compileall", "-q"]
        command += ["--invalidation-mode", "unchecked-hash"]
        command += ["-s", str(folder), "-p", unpacked_at, str(folder)]
        subprocess.run(command, check=True)


def find_compiler(
    version: str = PYTHON, candidates: Sequence[str] = (sys.executable, f"python{PYTHON}")
) -> Compiler | None:
    """The first of some Pythons, by path or by name on PATH, that runs and has a version."""
    tag = f"cpython-{version.replace('.', '')}"
    for candidate in candidates:
        try:
            # A name on PATH says little: version managers leave empty shims there.
            done = subprocess.run(
                [candidate, "-I", "-c", _PROBE], capture_output=True, text=True, check=False
            )
        except OSError:
            continue
        found = done.stdout.split()
        if done.returncode == 0 and found[:1] == [tag]:
            return Compiler(candidate, found[1])
    return None


def bundle(
    fill: Callable[[Path], None],
    inputs: Iterable[Path],
    unpacked_at: str,
    compiler: Compiler | None,
) -> lambda_.Code:
    """Code that `fill` writes to a folder, and that is compiled then if there is a `compiler`.

    `inputs`: files of the repository; with any of them, or with the compiler's version, the code's
    name changes, and with nothing else. `unpacked_at`: where Lambda unpacks it.
    """
    version = "" if compiler is None else compiler.version
    return lambda_.Code.from_asset(
        str(_FUNCTIONS),  # not read: what counts is the bundling and the hash
        asset_hash=digest([Path(__file__), *inputs], version),
        bundling=cdk.BundlingOptions(
            # Never pulled: the bundling below is local and always succeeds or raises.
            image=cdk.DockerImage.from_registry("none"),
            local=_Bundling(fill, unpacked_at, compiler),
        ),
    )


def function_code(name: str, compiler: Compiler | None) -> lambda_.Code:
    """A function's own folder of functions/."""
    package, own = _FUNCTIONS / "__init__.py", _FUNCTIONS / name

    def fill(target: Path) -> None:
        copy_sources(own, target / _FUNCTIONS.name / name)
        shutil.copy(package, target / _FUNCTIONS.name)

    return bundle(fill, [package, *sources(own)], "/var/task", compiler)


@jsii.implements(cdk.ILocalBundling)
class _Bundling:
    def __init__(
        self, fill: Callable[[Path], None], unpacked_at: str, compiler: Compiler | None
    ) -> None:
        self._fill = fill
        self._unpacked_at = unpacked_at
        self._compiler = compiler

    def try_bundle(self, output_dir: str, *_: Any, **__: Any) -> bool:
        target = Path(output_dir).resolve()
        self._fill(target)
        if self._compiler is not None:
            self._compiler.compile(target, self._unpacked_at)
        return True


def copy_sources(folder: Path, target: Path) -> None:
    """Copy a folder, but nothing that Python made of it."""
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns(*_CACHES))


def sources(folder: Path) -> Iterator[Path]:
    """The files that `copy_sources` copies."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def digest(inputs: Iterable[Path], more: str = "") -> str:
    """Of the names and contents of files of the repository, and of a text."""
    whole = hashlib.sha256(f"{more}\0".encode())
    for path in inputs:
        content = path.read_bytes()
        whole.update(f"{path.relative_to(ROOT).as_posix()}\0{len(content)}\0".encode())
        whole.update(content)
    return whole.hexdigest()
