"""The Lambda layer: the engine and the packages it stands on, put together without Docker.

boto3 comes along although Lambda has one: Lambda's changes without notice, and what runs is to be
what was tested. It is most of the layer's size.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.bundle import PYTHON, ROOT, Compiler, bundle, copy_sources, digest, sources

CACHE: Final = ROOT / "build" / "layer"
PLATFORM: Final = "aarch64-manylinux2014"

_ENGINE: Final = ROOT / "shared" / "stepwell_engine"
_PROJECT: Final = ROOT / "pyproject.toml"
_LOCK: Final = ROOT / "requirements.lock"


def engine_layer(
    scope: Construct, requirements: bool, compiler: Compiler | None
) -> lambda_.LayerVersion:
    """The layer of all functions; without `requirements` the engine alone."""

    def fill(target: Path) -> None:
        if requirements:
            shutil.copytree(packages(), target / "python")
        copy_sources(_ENGINE, target / "python" / _ENGINE.name)

    inputs = [Path(__file__), *sources(_ENGINE)]
    if requirements:
        # It changes with every dependency in pyproject.toml: it names who asked for what.
        inputs.append(_LOCK)
    return lambda_.LayerVersion(
        scope,
        "Engine",
        description="The Stepwell engine and its packages",
        code=bundle(fill, inputs, "/opt", compiler),
        compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
        compatible_architectures=[lambda_.Architecture.ARM_64],
    )


def packages() -> Path:
    """A folder with the packages for Lambda's Python and processor, from the lock file.

    It is made once per state of the lock file, with the package index, and kept in build/.
    """
    made = CACHE / digest([Path(__file__), _LOCK])
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
