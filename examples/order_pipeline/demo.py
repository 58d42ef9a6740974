"""The story: an order is started, the engine is killed with SIGKILL, comes back, and finishes."""

import argparse
import contextlib
import http.client
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from examples.order_pipeline.api import Access, Api, Refused
from examples.order_pipeline.checks import Check, Evidence, checks, left_nothing
from examples.order_pipeline.engine import Engine, EngineFailed
from examples.order_pipeline.receiver import Receiver
from examples.order_pipeline.screen import Screen

WORKFLOW = "order-pipeline"
PAYMENTS = "https://payments.example.com"  # the host in workflow.json that the receiver stands for
KEY = "order-42"
PATIENCE = 60  # seconds in which a run must come as far as is waited for
LOOK_EVERY = 0.1  # seconds
INTO_THE_SLEEP = 1.0  # seconds after which the engine is killed
DOWN = 1.0  # seconds before it is started again
LIVE = frozenset({"pending", "running", "sleeping", "waiting"})

# The database is the engine's, so its table is made by a workflow too. The trigger counts writes.
SETUP = [
    "create table accounts (id int primary key, active boolean not null)",
    "create table writes (account int not null, at timestamptz not null default now())",
    "create function note_write() returns trigger language plpgsql as "
    "$$ begin insert into writes (account) values (new.id); return new; end $$",
    "create trigger note_write after update on accounts for each row execute function note_write()",
    "insert into accounts (id, active) values (42, false)",
]
LOOK = "select active, (select count(*) from writes) as updates from accounts where id = 42"


class Stuck(Exception):
    """A run did not come as far as it must."""


def main(arguments: Sequence[str]) -> int:
    """Run the demo. 0 if every check holds, 1 if not, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m examples.order_pipeline")
    parser.add_argument("--data", type=Path, help="an empty folder to work in (default: temporary)")
    parser.add_argument("--keep", action="store_true", help="keep the folder afterwards")
    options = parser.parse_args(arguments)
    if options.data is not None and options.data.exists() and any(options.data.iterdir()):
        parser.error(f"{options.data} is not empty: the demo wants a folder of its own")
    console = Console(highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with _home(options.data, options.keep) as home:
            results = play(home, console)
    except KeyboardInterrupt:
        console.print("Interrupted; everything is stopped.")
        return 128 + signal.SIGINT
    except (EngineFailed, Stuck, Refused) as error:
        console.print(str(error), style="bold red", markup=False, soft_wrap=True)
        return 1
    except (OSError, http.client.HTTPException) as error:
        console.print(f"The engine does not answer: {error!r}", style="bold red", soft_wrap=True)
        return 1
    if options.data is not None or options.keep:
        console.print(f"The data is kept in {home}.", soft_wrap=True)
    failed = [check.name for check in results if not check.holds]
    if failed:
        console.print(f"Failed: {'; '.join(failed)}", style="bold red", soft_wrap=True)
        return 1
    console.print(
        "Killed with SIGKILL, finished all the same, and nothing ran twice.", style="bold green"
    )
    return 0


def play(home: Path, console: Console) -> list[Check]:
    """Everything that is shown, on the engine in this folder; what was checked."""
    definition = json.loads(_definition("workflow.json"))
    secret = definition["steps"][0]["secret"]
    payload = definition["steps"][-1]["payload"]
    engine = Engine(home)
    screen = Screen(console)
    with contextlib.ExitStack() as cleanup:
        receiver = cleanup.enter_context(Receiver(secret))
        cleanup.callback(engine.stop)
        api = Api(_start(engine, screen))
        _prepare(api, screen)
        text = _definition("workflow.json").replace(PAYMENTS, receiver.url)
        version = api.publish(WORKFLOW, json.loads(text))
        screen.say(f"Workflow {WORKFLOW} published, version {version}")
        run_id = api.start(WORKFLOW, KEY).body["id"]
        screen.say(f"Order started under the idempotency key {KEY}", "bold")
        with screen:
            before, killed = _kill_in_the_middle(api, engine, screen, run_id)
            api = Api(_start(engine, screen, again=True))
            after = _watch(api, screen, run_id, lambda run: run["status"] not in LIVE)
            screen.say(f"The run has ended: {after['status']}", "bold")
        row = _run_sql(api, "look", [LOOK])["rows"][0]
        evidence = Evidence(
            killed=killed,
            before=before,
            after=after,
            again=api.start(WORKFLOW, KEY).body["id"],
            runs=len(api.every(f"/workflows/{WORKFLOW}/runs")),
            active=row["active"],
            updates=row["updates"],
            messages=api.every("/queues/emails/messages"),
            deliveries=receiver.deliveries,
        )
        ended = left_nothing(engine.stop(), engine.left_running())
    results = [*checks(evidence, payload), ended]
    screen.results(results)
    return results


def _start(engine: Engine, screen: Screen, again: bool = False) -> Access:
    access = engine.start()
    how = "Engine is back on the same data" if again else "Engine started"
    screen.say(f"{how}: process {engine.pid}, {access.url}", "green")
    return access


def _prepare(api: Api, screen: Screen) -> None:
    """The queue, and the table with an account that is not active yet."""
    api.call("PUT", "/queues/emails", {})
    screen.say("Queue emails created")
    screen.say("PostgreSQL is being set up ...")
    _run_sql(api, "setup", SETUP)
    screen.say("Table accounts created: account 42 is not active")


def _run_sql(api: Api, workflow: str, statements: Sequence[str]) -> Any:
    """The output of a run with a step for each statement."""
    steps = [
        {"key": f"sql{number}", "kind": "sql", "target": statement, "timeout_seconds": 60}
        for number, statement in enumerate(statements)
    ]
    api.publish(workflow, {"steps": steps})
    run_id = api.start(workflow).body["id"]
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        run = api.run(workflow, run_id, wait=20)
        if run["status"] == "succeeded":
            return run["output"]
        if run["status"] not in LIVE:
            raise Stuck(f"workflow {workflow} {run['status']}: {run['last_error']}")
    raise Stuck(f"workflow {workflow} did not end within {PATIENCE} s")


def _kill_in_the_middle(api: Api, engine: Engine, screen: Screen, run_id: str) -> tuple[Any, int]:
    """The run's detail right before the kill, and the engine's exit code."""
    _watch(api, screen, run_id, lambda run: _sleeps(run) or run["status"] not in LIVE)
    time.sleep(INTO_THE_SLEEP)
    before = api.run(WORKFLOW, run_id)
    screen.show(before)
    pid = engine.pid
    code = engine.kill()
    screen.show(before, up=False)
    screen.say(f"kill -9 {pid}: the engine is gone, two steps are recorded", "bold red")
    time.sleep(DOWN)
    return before, code


def _watch(api: Api, screen: Screen, run_id: str, until: Any) -> Any:
    """Show the run until a condition on its detail holds; that detail."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        run = api.run(WORKFLOW, run_id)
        screen.show(run)
        if until(run):
            return run
        time.sleep(LOOK_EVERY)
    raise Stuck(f"run {run_id} did not come further than {run['status']} within {PATIENCE} s")


def _sleeps(run: Any) -> bool:
    return any(step["status"] == "sleeping" for step in run["steps"])


def _definition(name: str) -> str:
    return (Path(__file__).parent / name).read_text("utf-8")


@contextlib.contextmanager
def _home(given: Path | None, keep: bool) -> Iterator[Path]:
    """The folder to work in, removed afterwards if it is a temporary one."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.resolve()
        return
    home = Path(tempfile.mkdtemp(prefix="stepwell-demo-"))
    try:
        yield home
    finally:
        if not keep:
            shutil.rmtree(home, ignore_errors=True)
