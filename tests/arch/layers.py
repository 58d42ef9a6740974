"""The layers of the code and what each may import. The picture is in docs/ARCHITECTURE.md.

functions, local ─→ wiring ─→ api, lambdas ─→ service ─→ core ─→ limits, errors
                       └──────────→ adapters ───→ ports ─┘
"""

from pathlib import PurePosixPath

ENGINE = "stepwell_engine"

_RULES = frozenset({"core", "limits", "errors"})
_PORTS = _RULES | {"ports"}
_API = _PORTS | {"service", "api"}
# Above wiring everything may be named but the adapters: wiring alone chooses those.
_HOST = _API | {"lambdas", "wiring", "settings"}

MAY_IMPORT: dict[str, frozenset[str]] = {
    "limits": frozenset(),
    "errors": frozenset(),
    "core": _RULES,
    "ports": _PORTS,
    "service": _PORTS | {"service"},
    "adapters": _PORTS | {"adapters"},
    "api": _API,
    "lambdas": _PORTS | {"service", "lambdas"},
    "settings": frozenset({"limits", "errors", "settings"}),
    "wiring": _API | {"lambdas", "adapters", "settings", "wiring"},
    "functions": _HOST | {"functions"},
    "local": _HOST | {"local"},
    # The models of the AWS adapters own the names and keys of the tables; infra.owner makes the
    # first token by the rules of the service.
    "infra": _PORTS | {"infra", "settings", "adapters", "service"},
    # Written as a user would write them: over the API, without the engine at hand.
    "examples": frozenset({"examples", "sdk"}),
    # The SDKs and the engine share no code, only the protocol.
    "sdk": frozenset({"sdk"}),
    # For developers of the engine: they look at all of it, and nothing of it looks at them.
    "tools": _HOST | {"adapters", "functions", "infra", "examples", "tools"},
    "tests": _HOST
    | {"adapters", "functions", "local", "infra", "tools", "examples", "sdk", "tests"},
}

# Libraries by layer; a layer that is not here may use any. Rules and use cases know none.
LIBRARIES: dict[str, frozenset[str]] = {
    "limits": frozenset(),
    "errors": frozenset(),
    "core": frozenset(),
    "ports": frozenset(),
    "service": frozenset(),
    "api": frozenset({"aws_lambda_powertools", "pydantic", "typing_extensions"}),
    "lambdas": frozenset({"aws_lambda_powertools"}),
    "settings": frozenset({"pydantic"}),
    "functions": frozenset(),
}

# What the pure rules may use of the standard library: nothing that does I/O, reads a clock, draws
# random numbers, logs, or depends on the machine.
PURE_MODULES = frozenset(
    {
        "__future__",
        "abc",
        "base64",
        "binascii",
        "bisect",
        "collections",
        "copy",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "hashlib",
        "heapq",
        "hmac",
        "ipaddress",
        "itertools",
        "json",
        "math",
        "operator",
        "re",
        "string",
        "struct",
        "types",
        "typing",
        "unicodedata",
        "urllib.parse",
        "zlib",
    }
)

# What the use cases may not use: under the simulator they must do the same on every run of a seed.
UNSEEDED_MODULES = frozenset(
    {
        "asyncio",
        "concurrent",
        "http",
        "multiprocessing",
        "os",
        "pathlib",
        "queue",
        "random",
        "secrets",
        "socket",
        "sqlite3",
        "subprocess",
        "threading",
        "time",
        "urllib.request",
        "uuid",
    }
)


# The folders of a layer import downward only: each may import those before it, and itself.
FOLDERS: dict[str, tuple[str, ...]] = {
    "core": ("values", "run", "declared"),
    "service": ("projects", "runs", "worker"),
}


def layer_of_path(path: PurePosixPath) -> str:
    """The layer that a file belongs to, or its top folder if that is none."""
    parts = path.parts
    if parts[:2] == ("shared", ENGINE):
        return PurePosixPath(parts[2]).stem
    return parts[0]


def layer_of_import(name: str) -> str | None:
    """The layer that a dotted name belongs to; None for a library."""
    first, *rest = name.split(".")
    if first == ENGINE:
        return rest[0] if rest else ENGINE
    if first == "stepwell":
        return "sdk"
    return first if first in MAY_IMPORT else None


def folder_of_path(path: PurePosixPath) -> str | None:
    """The folder of its layer that a file of the engine lies in; None for a file of the layer."""
    parts = path.parts
    return parts[3] if parts[:2] == ("shared", ENGINE) and len(parts) > 4 else None


def folder_of_import(name: str) -> str | None:
    """The folder of its layer that a dotted name of the engine leads to."""
    first, *rest = name.split(".")
    return rest[1] if first == ENGINE and len(rest) > 1 else None
