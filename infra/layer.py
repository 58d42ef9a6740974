"""The Lambda layer: the engine and the packages it stands on, put together without Docker.

boto3 comes along although Lambda has one: Lambda's changes without notice, and what runs is to be
what was tested. It is most of the layer's size.
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

ROOT: Final = Path(__file__).resolve().parent.parent
CACHE: Final = ROOT / "build" / "layer"
PYTHON: Final = "3.13"
PLATFORM: Final = "aarch64-manylinux2014"

_ENGINE: Final = ROOT / "shared" / "stepwell_engine"
_PROJECT: Final = ROOT / "pyproject.toml"
_LOCK: Final = ROOT / "requirements.lock"


def engine_layer(scope: Construct, requirements: bool) -> lambda_.LayerVersion:
    """The layer of all functions; without `requirements` the engine alone."""
    return lambda_.LayerVersion(
        scope,
        "Engine",
        description="The Stepwell engine and its packages",
        code=lambda_.Code.from_asset(
            str(_ENGINE.parent),
            asset_hash=_hash(requirements),
            bundling=cdk.BundlingOptions(
                # Never pulled: the bundling below is local and always succeeds or raises.
                image=cdk.DockerImage.from_registry("none"),
                local=_Bundling(requirements),
            ),
        ),
        compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
        compatible_architectures=[lambda_.Architecture.ARM_64],
    )


@jsii.implements(cdk.ILocalBundling)
class _Bundling:
    def __init__(self, requirements: bool) -> None:
        self._requirements = requirements

    def try_bundle(self, output_dir: str, *_: Any, **__: Any) -> bool:
        target = Path(output_dir) / "python"
        if self._requirements:
            shutil.copytree(packages(), target)
        shutil.copytree(
            _ENGINE,
            target / _ENGINE.name,
            ignore=shutil.ignore_patterns("__pycache__", "*.py[cod]"),
        )
        return True


def packages() -> Path:
    """A folder with the packages for Lambda's Python and processor, from the lock file.

    It is made once per state of the lock file, with the package index, and kept in build/.
    """
    made = CACHE / _digest([Path(__file__), _LOCK])
    if made.is_dir():
        return made
    CACHE.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=CACHE) as folder:
        fresh = Path(folder) / "packages"
        _install(fresh)
        try:
            fresh.rename(made)
        except OSError:  # another process was faster; what it made is the same
            if not made.is_dir():
                raise
    return made


def _install(target: Path) -> None:
    # As constraints the lock file gives the version and the hashes of everything installed, while
    # pyproject.toml says what that is: the project's dependencies and the group aws.
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-installer-metadata"]
    command += ["--python-platform", PLATFORM, "--python-version", PYTHON]
    command += ["--only-binary", ":all:", "--verify-hashes", "--constraint", str(_LOCK)]
    command += ["--requirement", str(_PROJECT), "--group", f"{_PROJECT}:aws"]
    subprocess.run([*command, "--target", str(target)], check=True, cwd=ROOT)
    shutil.rmtree(target / "bin", ignore_errors=True)
    (target / ".lock").unlink(missing_ok=True)
    for cache in list(target.rglob("__pycache__")):
        shutil.rmtree(cache)


def _hash(requirements: bool) -> str:
    """Changes with what goes into the layer, and with nothing else."""
    # The lock file changes with every dependency in pyproject.toml: it names who asked for what.
    inputs = [Path(__file__), *_engine_sources()]
    if requirements:
        inputs.append(_LOCK)
    return _digest(inputs)


def _engine_sources() -> Iterator[Path]:
    for path in sorted(_ENGINE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _digest(inputs: list[Path]) -> str:
    whole = hashlib.sha256()
    for path in inputs:
        content = path.read_bytes()
        whole.update(f"{path.relative_to(ROOT).as_posix()}\0{len(content)}\0".encode())
        whole.update(content)
    return whole.hexdigest()
