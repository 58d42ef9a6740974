"""What a fresh Lambda of the executor costs before it can work: CPU time of its imports.

Beside it stands what botocore and its first client take alone, which nothing here can spare.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

# Of the 350 ms that the executor's import may take where botocore and its first client take 290.
ROOT: Final = Path(__file__).resolve().parents[2]
TARGET: Final = 350 / 290
ROUNDS: Final = 20
_EXECUTOR: Final = "import functions.executor.handler"
_BOTOCORE: Final = """
import botocore.session
botocore.session.get_session().create_client("dynamodb", region_name="eu-west-1")
"""
_TIMED: Final = "import time\n{}\nprint(time.process_time())"


def start(rounds: int = ROUNDS) -> dict[str, Any]:
    """CPU seconds of fresh interpreters, the least of some rounds: what else runs only adds."""
    taken = [(_cpu(_EXECUTOR), _cpu(_BOTOCORE)) for _ in range(rounds)]
    executor, botocore = map(min, zip(*taken, strict=True))
    return {
        "executor_import_seconds": executor,
        "botocore_seconds": botocore,
        "executor_import": executor / botocore,
        "targets": {"executor_import": TARGET},
    }


def _cpu(code: str) -> float:
    environment = {"PATH": os.environ.get("PATH", "")}
    command = [sys.executable, "-c", _TIMED.format(code)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)
