"""Functions by command, as real processes."""

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from stepwell_engine import limits
from stepwell_engine.adapters.runners.command import Commands
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.declared.definition import Kind
from stepwell_engine.core.run.attempt import Failed, Outcome, Succeeded
from tests.adapters.attempts import attempt, failure, output
from tests.adapters.outputs import RAW_OUTPUTS, Returned

PATH = os.environ["PATH"]


def run(*words: str, timeout: int = 30_000, payload: object = None) -> Outcome:
    fields = {"timeout": timeout, "payload": payload}
    with closing(Commands({"PATH": PATH})) as commands:
        one = attempt(Kind.FUNCTION, "f", **fields)
        return commands.call(words, one, Deadline(timeout))


def sh(script: str, timeout: int = 30_000) -> Outcome:
    return run("sh", "-c", script, timeout=timeout)


def test_the_event_comes_on_stdin_and_stdout_is_the_output() -> None:
    found = output(run("cat", payload={"n": [1, "é"]}))
    assert found == {
        "payload": {"n": [1, "é"]},
        "run_id": "0190-run",
        "workflow": "order",
        "step": "charge",
        "attempt": 2,
        "idempotency_key": "0190-run:charge",
    }


def test_a_large_event_is_passed_while_the_program_prints() -> None:
    payload = "x" * (limits.MAX_STEP_PAYLOAD - 2)
    assert output(run("cat", payload=payload))["payload"] == payload


def test_words_are_passed_as_they_are_without_a_shell() -> None:
    words = ["$HOME", "a b", "*", "; exit 1", ""]
    script = "import json, sys; print(json.dumps(sys.argv[1:]))"
    assert output(run(sys.executable, "-c", script, *words)) == words


def test_a_program_that_ignores_the_event_is_fine() -> None:
    assert run("true", payload="x" * 60_000) == Succeeded(None)
    assert output(sh("exec 0<&-; echo 7")) == 7


def test_only_home_lang_and_path_of_the_environment_are_passed_on() -> None:
    environment = {"PATH": PATH, "HOME": "/nowhere", "LANG": "C", "AWS_SECRET_ACCESS_KEY": "x"}
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    with closing(Commands(environment)) as commands:
        found = output(
            commands.call(
                [sys.executable, "-c", script], attempt(Kind.FUNCTION, "f"), Deadline(20_000)
            )
        )
    assert found.items() >= {"PATH": PATH, "HOME": "/nowhere", "LANG": "C"}.items()
    assert "AWS_SECRET_ACCESS_KEY" not in found


def test_an_exit_code_fails_with_the_end_of_stderr() -> None:
    assert sh("echo no stock >&2; exit 3") == Failed(
        'the command "sh" ended with exit code 3: no stock'
    )
    assert sh("exit 1") == Failed('the command "sh" ended with exit code 1')
    long = failure(sh("yes 0123456789 | head -n 100000 >&2; echo the end >&2; exit 1")).message
    assert long.endswith("0123456789\nthe end")
    assert len(long) < 600


def test_an_output_with_an_exit_code_is_no_success() -> None:
    assert isinstance(sh("echo '{}'; exit 1"), Failed)


def test_a_signal_fails_with_its_name() -> None:
    assert sh("kill -SEGV $$") == Failed('the command "sh" was ended by SIGSEGV')


def test_what_it_says_on_stderr_does_no_harm() -> None:
    assert output(sh("echo warning >&2; echo 1")) == 1


@pytest.mark.parametrize("text", ["no json", "{} {}", "NaN"])
def test_an_output_that_is_no_json_fails(text: str) -> None:
    failed = failure(run("echo", text))
    assert failed.message.startswith('what the command "echo" printed is no JSON')
    assert failed.message.endswith(text)


@pytest.mark.parametrize("returned", RAW_OUTPUTS, ids=lambda one: one.name)
def test_an_output_may_be_so_large(tmp_path: Path, returned: Returned) -> None:
    file = tmp_path / "output"
    file.write_bytes(returned.body)
    returned.check(run("cat", str(file)))


def test_a_program_that_prints_for_ever_is_ended() -> None:
    failed = failure(run("yes"))
    assert (failed.code, failed.retryable) == ("output_too_large", False)


def test_a_program_that_does_not_exist_fails() -> None:
    assert run("no-such-program") == Failed(
        'the command "no-such-program" cannot be started: No such file or directory'
    )


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Callable[[], bytes]]:
    """Reads from `tmp_path`/fifo until every process that opened it has ended."""
    os.mkfifo(tmp_path / "fifo")
    descriptor = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)

    def read() -> bytes:
        os.set_blocking(descriptor, True)
        return os.read(descriptor, 1)

    yield read
    os.close(descriptor)


@pytest.mark.parametrize(
    "script",
    [
        "sleep 600 & wait",
        "trap '' TERM INT; sleep 600 & wait; wait; sleep 600",
        "exec >&- 2>&- <&-; sleep 600 & wait",
        "sleep 600 & while true; do echo 1 >&2; sleep 0.01; done",
    ],
    ids=["waits", "ignores signals", "closes its pipes", "chatters"],
)
def test_at_the_deadline_the_whole_group_is_killed(
    script: str, tmp_path: Path, held: Callable[[], bytes]
) -> None:
    outcome = sh(f"exec 3> {tmp_path / 'fifo'}; {script}", timeout=300)
    assert outcome == Failed('the command "sh" timed out after 0.3 s', "timeout")
    assert held() == b""


@pytest.mark.parametrize(
    "script",
    ["setsid sleep 600 & wait", "setsid sh -c 'setsid sleep 600 & wait' & wait"],
    ids=["child", "grandchild"],
)
def test_at_the_deadline_those_are_killed_too_that_have_left_the_group(
    script: str, tmp_path: Path, held: Callable[[], bytes]
) -> None:
    outcome = sh(f"exec 3> {tmp_path / 'fifo'}; {script}", timeout=300)
    assert outcome == Failed('the command "sh" timed out after 0.3 s', "timeout")
    assert held() == b""


def test_one_that_may_not_be_stopped_saves_none_of_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, held: Callable[[], bytes]
) -> None:
    """As a program of another user's would be."""

    def denied(self: psutil.Process) -> NoReturn:
        raise psutil.AccessDenied(self.pid)

    monkeypatch.setattr(psutil.Process, "suspend", denied)
    outcome = sh(f"exec 3> {tmp_path / 'fifo'}; setsid sleep 600 & sleep 600", timeout=300)
    assert outcome == Failed('the command "sh" timed out after 0.3 s', "timeout")
    assert held() == b""


def test_the_group_is_killed_where_its_processes_cannot_be_listed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, held: Callable[[], bytes]
) -> None:
    def short(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(psutil.Process, "children", short)
    outcome = sh(f"exec 3> {tmp_path / 'fifo'}; sleep 600 & wait", timeout=300)
    assert outcome == Failed('the command "sh" timed out after 0.3 s', "timeout")
    assert held() == b""


def test_what_a_program_leaves_running_neither_holds_the_step_nor_lives_on(
    tmp_path: Path, held: Callable[[], bytes]
) -> None:
    assert output(sh(f"exec 3> {tmp_path / 'fifo'}; sleep 600 & echo 1")) == 1
    assert held() == b""


def test_a_program_that_left_its_group_does_not_hold_the_step_either() -> None:
    # It ends by itself: its words break its pipe once nobody listens.
    noise = ["sh", "-c", "while echo noise >&2; do :; done"]
    script = (
        "import os, subprocess\n"
        f"subprocess.Popen({noise}, start_new_session=True)\n"
        "print(1, flush=True)\n"
        "os._exit(0)\n"
    )
    assert output(run(sys.executable, "-c", script)) == 1


def test_the_event_is_one_json_document(tmp_path: Path) -> None:
    file = tmp_path / "event"
    assert run("sh", "-c", f"cat > {file}", payload=[1]) == Succeeded(None)
    assert json.loads(file.read_bytes())["payload"] == [1]
