"""Functions that are Python callables."""

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell_engine import limits
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.adapters.runners.python_callable import MAX_OVERDUE, Callables
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Deferred, Failed, Outcome, Succeeded
from tests.adapters.attempts import attempt, failure, output
from tests.adapters.outputs import OUTPUTS, Returned

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file of the user's."""

    def to(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return to


@pytest.fixture
def callables(tmp_path: Path) -> Iterator[Callables]:
    (tmp_path / "second").mkdir()
    made = Callables([tmp_path, tmp_path / "second"])
    yield made
    made.close()


def call(callables: Callables, name: str, **fields: Any) -> Outcome:
    one = attempt(Kind.FUNCTION, "f", **fields)
    return callables.call(name, one, Deadline(one.timeout))


def test_a_callable_gets_the_event_and_returns_the_output(
    callables: Callables, write: Write
) -> None:
    write("shop.py", "def echo(event):\n    return event\n")
    assert output(call(callables, "shop:echo")) == {
        "payload": {"amount": 4900},
        "run_id": "0190-run",
        "workflow": "order",
        "step": "charge",
        "attempt": 2,
        "idempotency_key": "0190-run:charge",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop.stock:reserve", "reserved"),
        ("shop.stock:Stock.reserve", "by class"),
        ("shop:top", "top"),
        ("other:late", "second folder"),
        ("space.inner:f", "no __init__"),
    ],
)
def test_packages_attributes_and_several_folders(
    callables: Callables, write: Write, name: str, expected: str
) -> None:
    write("shop/__init__.py", "from .stock import TOP\n\ndef top(event): return TOP\n")
    write(
        "shop/stock.py",
        "from . import words\nTOP = 'top'\ndef reserve(event): return words.RESERVED\n"
        "class Stock:\n    @staticmethod\n    def reserve(event): return 'by class'\n",
    )
    write("shop/words.py", "RESERVED = 'reserved'\n")
    write("second/other.py", "def late(event): return 'second folder'\n")
    write("space/inner.py", "def f(event): return 'no __init__'\n")
    assert output(call(callables, name)) == expected


def test_a_module_is_the_users_whatever_its_name(callables: Callables, write: Write) -> None:
    write("json.py", "def f(event): return 'mine'\n")
    write("stepwell_engine/limits.py", "def f(event): return 'mine too'\n")
    assert output(call(callables, "json:f")) == "mine"
    assert output(call(callables, "stepwell_engine.limits:f")) == "mine too"
    assert sys.modules["json"].__file__ != sys.modules[limits.__name__].__file__
    assert not hasattr(sys.modules["json"], "f")
    assert not hasattr(limits, "f")


@pytest.mark.parametrize("name", ["os:getcwd", "stepwell_engine.errors:Problem", "tests:x"])
def test_nothing_but_the_folders_is_looked_at(callables: Callables, name: str) -> None:
    module = name.partition(":")[0]
    assert call(callables, name) == Failed(
        f"there is no module {module} in the folders of functions that the host was started "
        "with (--functions)"
    )


def test_a_path_through_something_that_is_no_package_is_no_module(
    callables: Callables, write: Write
) -> None:
    write("shop.py", "import os\n")
    assert "no module shop.os" in failure(call(callables, "shop.os:getcwd")).message


@pytest.mark.parametrize("name", ["shop:missing", "shop:VALUE", "shop:f.missing"])
def test_what_is_not_callable_is_reported(callables: Callables, write: Write, name: str) -> None:
    write("shop.py", "VALUE = 1\ndef f(event): ...\n")
    path = name.partition(":")[2]
    assert call(callables, name) == Failed(f"the module shop has no callable {path}")


def test_an_async_function_is_refused(callables: Callables, write: Write) -> None:
    write("shop.py", "async def f(event): ...\n")
    assert "async function" in failure(call(callables, "shop:f")).message


@pytest.mark.parametrize(
    ("body", "described"),
    [
        ("raise ValueError('no stock')", "ValueError: no stock"),
        ("raise KeyError", "KeyError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise type('Own', (BaseException,), {})('x')", "Own: x"),
        ("raise OSError(24, 'Too many open files')", "OSError: [Errno 24] Too many open files"),
        ("return 1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_an_exception_fails_with_its_type_and_message(
    callables: Callables, write: Write, body: str, described: str
) -> None:
    write("shop.py", f"def f(event):\n    {body}\n")
    for _ in range(2):  # and the thread goes on
        assert call(callables, "shop:f") == Failed(f"the function shop:f raised {described}")


@pytest.mark.parametrize("raised", ["RuntimeError", "SystemExit", "KeyboardInterrupt"])
def test_an_exception_that_cannot_be_described_fails_too(
    callables: Callables, write: Write, raised: str
) -> None:
    write(
        "shop.py",
        f"class Mute(Exception):\n    def __str__(self): raise {raised}\n"
        "def f(event): raise Mute\n",
    )
    for _ in range(2):
        assert call(callables, "shop:f") == Failed(
            "the function shop:f raised Mute, whose text cannot be shown"
        )


def test_a_module_that_cannot_be_imported_fails_and_is_tried_again(
    callables: Callables, write: Write
) -> None:
    write("shop.py", "def f(event) return 1\n")
    assert "raised SyntaxError" in failure(call(callables, "shop:f")).message
    write("shop.py", "def f(event): return 'mended'\n")
    assert output(call(callables, "shop:f")) == "mended"


def test_a_module_is_loaded_once(callables: Callables, write: Write) -> None:
    write(
        "shop.py", "count = 0\ndef f(event):\n    global count\n    count += 1\n    return count\n"
    )
    assert [output(call(callables, "shop:f")) for _ in range(3)] == [1, 2, 3]
    write("shop.py", "def f(event): return 'changed'\n")
    assert output(call(callables, "shop:f")) == 4


def test_a_module_that_came_later_is_found(callables: Callables, write: Write) -> None:
    assert isinstance(call(callables, "later:f"), Failed)
    write("later.py", "def f(event): return 1\n")
    assert output(call(callables, "later:f")) == 1


@pytest.mark.parametrize("value", ["{1}", "object()", "float('nan')", "b'x'", "'\\ud800'"])
def test_what_is_returned_must_be_json(callables: Callables, write: Write, value: str) -> None:
    write("shop.py", f"def f(event): return {value}\n")
    assert "what shop:f returned is no JSON" in failure(call(callables, "shop:f")).message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("x = {}; x['a'] = [x]; return x", "nests deeper than 200 levels, or contains itself"),
        ("x = []; x.append(x); return x", "nests deeper than 200 levels, or contains itself"),
        ("x = []\n    for _ in range(250): x = [x, x]\n    return x", "nests deeper than 200"),
        ("return Odd(a=1)", "is no JSON: reading it raised ZeroDivisionError: division by zero"),
    ],
    ids=["object", "list", "shared", "odd"],
)
def test_a_value_that_has_no_end_or_cannot_be_read_fails_at_once(
    callables: Callables, write: Write, body: str, reason: str
) -> None:
    write(
        "shop.py",
        f"class Odd(dict):\n    def values(self): return 1 / 0\ndef f(event):\n    {body}\n",
    )
    assert reason in failure(call(callables, "shop:f")).message


def test_returning_nothing_is_no_output(callables: Callables, write: Write) -> None:
    write("shop.py", "def f(event): ...\n")
    assert call(callables, "shop:f") == Succeeded(None)


def test_a_payload_may_be_null(callables: Callables, write: Write) -> None:
    write("shop.py", "def f(event): return [event['payload']]\n")
    assert output(call(callables, "shop:f", payload=None)) == [None]


@pytest.mark.parametrize("returned", OUTPUTS, ids=lambda one: one.name)
def test_an_output_may_be_so_large(callables: Callables, write: Write, returned: Returned) -> None:
    write("shop.py", f"import json\ndef f(event): return json.loads({returned.body!r})\n")
    returned.check(call(callables, "shop:f"))


@pytest.fixture
def gate(callables: Callables, write: Write) -> Iterator[threading.Event]:
    """A callable `gate:wait` that returns once the event is set, and `gate:pass_by`."""
    write(
        "gate.py",
        "import threading\n"
        "event = threading.Event()\n"
        "def get(_): pass_by.event = event\n"
        "def pass_by(_): return 'passed'\n"
        "def wait(_):\n    event.wait()\n    return 'late'\n",
    )
    call(callables, "gate:get")
    module = next(
        module
        for name, module in reversed(list(sys.modules.items()))
        if name.startswith("_stepwell_functions_") and name.endswith(".gate")
    )
    event: threading.Event = module.event
    yield event
    event.set()


def test_a_callable_that_overruns_times_out_and_others_go_on(
    callables: Callables, gate: threading.Event
) -> None:
    assert call(callables, "gate:wait", timeout=50) == Failed(
        "the function gate:wait timed out after 0.05 s", "timeout"
    )
    assert output(call(callables, "gate:pass_by")) == "passed"


def test_a_hundred_may_overrun_then_calls_are_put_off_until_one_returns(
    callables: Callables, gate: threading.Event
) -> None:
    overdue = 0
    while overdue < MAX_OVERDUE:  # a thread may get going too late for so short a time
        outcome = call(callables, "gate:wait", timeout=10)
        overdue += isinstance(outcome, Failed) and outcome.code == "timeout"
    assert call(callables, "gate:pass_by") == Deferred(
        "100 Python functions have overrun their timeout and still run: no further ones are called "
        "until one of them returns, or the host is started again"
    )
    gate.set()
    while isinstance(call(callables, "gate:pass_by"), Deferred):
        pass
    assert output(call(callables, "gate:wait")) == "late"


def test_many_threads_call_at_once(callables: Callables, write: Write) -> None:
    write("shop.py", "def f(event): return event['payload']\n")
    found: list[bool] = []

    def work(number: int) -> None:
        for turn in range(50):
            outcome = call(callables, "shop:f", payload=[number, turn])
            found.append(output(outcome) == [number, turn])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 400
