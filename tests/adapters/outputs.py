"""What a function may return, and what not: the same for every kind of function."""

import json
from dataclasses import dataclass
from typing import Any

from stepwell_engine import limits
from stepwell_engine.core.run.attempt import Failed, Outcome, Succeeded


@dataclass(frozen=True)
class Returned:
    """`body` is what a function sends; `words` of why it is refused, None if it is not."""

    name: str
    body: bytes
    words: str | None = None

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    def check(self, outcome: Outcome) -> None:
        """The outcome of a call that returned this is the right one."""
        if self.words is None:
            compact = json.dumps(self.value, ensure_ascii=False, separators=(",", ":"))
            assert outcome == Succeeded(compact.encode())
            return
        assert isinstance(outcome, Failed), self.name
        assert self.words in outcome.message
        assert (outcome.code, outcome.retryable) == ("output_too_large", False)


def _texts(size: int) -> dict[str, bytes]:
    """Values of so many bytes as compact JSON, in several spellings."""
    text = "x" * (size - 2)
    accents = "é" * (size // 2 - 1) + "x" * (size % 2)
    count = size // 2 - 1
    numbers = [*[0] * (count - 1), 10 ** (size - 2 * count - 1)]
    return {
        "compact": json.dumps(text).encode(),
        "a line": json.dumps(text).encode() + b"\n",
        "escaped": json.dumps(accents).encode(),
        "indented": json.dumps(numbers, indent=2).encode(),
    }


_MOST = f"has {limits.MAX_OUTPUT + 1:,} bytes as compact JSON, at most {limits.MAX_OUTPUT:,}"
_RAW = f"has more than {limits.MAX_RAW_OUTPUT:,} bytes"
OUTPUTS = [
    *(Returned(name, body) for name, body in _texts(limits.MAX_OUTPUT).items()),
    *(
        Returned(f"{name}, one more", body, _MOST)
        for name, body in _texts(limits.MAX_OUTPUT + 1).items()
    ),
]
# Of functions that send text.
RAW_OUTPUTS = [
    *OUTPUTS,
    Returned("spaced", b"1".ljust(limits.MAX_RAW_OUTPUT)),
    Returned("spaced, one more", b"1".ljust(limits.MAX_RAW_OUTPUT + 1), _RAW),
]
