"""The synthesized template on an emulator of AWS with IAM enforced, and an order that runs there.

Time is real here. The minute's tick is waited for once, where a run can be saved by nothing else.
"""

import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from stepwell_engine.adapters.embedded.postgres import LocalPostgres
from tests.e2e.data_api import DATABASE, DataApi, serving
from tests.e2e.emulator import Emulator, running
from tests.e2e.installation import (
    FUNCTIONS,
    RESERVE,
    Installation,
    JsonObject,
    install,
    take_away,
)
from tests.scenarios.receiver import Receiver, Reply, receiving
from tests.scenarios.test_order_pipeline import SECRET, is_signed

pytestmark = pytest.mark.e2e

RESERVES = """
def handler(event, context):
    return {"reserved": event["payload"]["sku"], "key": event["idempotency_key"]}
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataApi]:
    """A cluster with one account that is not active."""
    postgres = LocalPostgres(tmp_path_factory.mktemp("postgres"))
    try:
        dsn = postgres.dsn("shop")
        with psycopg.connect(dsn) as connection:
            connection.execute("create table accounts (id int primary key, active boolean)")
            connection.execute("insert into accounts values (42, false)")
        with serving(dsn) as api:
            yield api
    finally:
        postgres.stop()


@pytest.fixture(scope="module")
def cloud(database: DataApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """The emulator; Aurora's Data API is ours, on a real PostgreSQL."""
    folder = tmp_path_factory.mktemp("emulator")
    with running(folder, AWS_ENDPOINT_URL_RDS_DATA=database.url) as emulator:
        yield emulator


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("assembly")


@pytest.fixture(scope="module")
def installed(cloud: Emulator, assembly: Path) -> Installation:
    """The stacks, and a function of the user's beside them."""
    create_reserve(cloud)
    return install(cloud, assembly)


def create_reserve(cloud: Emulator) -> None:
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}}
    document = {"Version": "2012-10-17", "Statement": [{**trust, "Action": "sts:AssumeRole"}]}
    role = cloud.client("iam").create_role(
        RoleName="reserve", AssumeRolePolicyDocument=json.dumps(document)
    )
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("reserve.py", RESERVES)
    cloud.client("lambda").create_function(
        FunctionName="reserve",
        Runtime="python3.13",
        Role=role["Role"]["Arn"],
        Handler="reserve.handler",
        Code={"ZipFile": code.getvalue()},
    )


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@dataclass(frozen=True)
class Order:
    """An order that ran to its end, and what the functions said until then."""

    run: JsonObject
    complaints: Mapping[str, list[str]]
    metrics: Mapping[str, Counter[str]]

    def step(self, key: str) -> JsonObject:
        (found,) = (step for step in self.run["steps"] if step["key"] == key)
        step: JsonObject = found
        return step


@pytest.fixture(scope="module")
def order(installed: Installation, receiver: Receiver) -> Order:
    """Charged at the second attempt, reserved, provisioned, cooled off, and told to the user."""
    receiver.script(Reply(500), Reply(200))
    installed.ok("PUT", "/queues/emails", {})
    installed.ok("PUT", "/functions/reserve", {"lambda": RESERVE})
    installed.ok("PUT", "/database", DATABASE)
    installed.publish("order", *steps(receiver))
    run_id = installed.start("order", input={"order_id": 42}, idempotency_key="order-42")
    run = installed.finish("order", run_id)
    installed.drain()
    installed.invoke_tick()
    return Order(
        run,
        {name: installed.complaints(name) for name in FUNCTIONS},
        {name: installed.metrics(name) for name in FUNCTIONS},
    )


def steps(receiver: Receiver) -> list[JsonObject]:
    charge: JsonObject = {
        "key": "charge",
        "kind": "webhook",
        "target": f"{receiver.url}/charge",
        "payload": {"amount": 4900, "currency": "eur"},
        "secret": SECRET,
    }
    provision = "update accounts set active = true where id = 42"
    return [
        charge,
        {"key": "reserve", "kind": "function", "target": "reserve", "payload": {"sku": "lamp"}},
        {"key": "provision", "kind": "sql", "target": provision},
        {"key": "cool_off", "kind": "sleep", "sleep_for": "3s"},
        {"key": "notify", "kind": "enqueue", "target": "emails", "payload": {"to": "ada"}},
    ]


def test_an_order_runs_through_all_five_kinds(order: Order, database: DataApi) -> None:
    run = order.run
    assert (run["status"], run["last_error"], run["input"]) == ("succeeded", None, {"order_id": 42})
    assert [step["status"] for step in run["steps"]] == ["succeeded"] * 5
    assert order.step("charge")["output"] == {"delivered": True, "status": 200}
    key = f"{run['id']}:reserve"
    assert order.step("reserve")["output"] == {"reserved": "lamp", "key": key}
    assert order.step("provision")["output"] == {"rows_affected": 1}
    assert run["output"] == order.step("notify")["output"]
    with psycopg.connect(database.dsn) as connection:
        assert connection.execute("select * from accounts").fetchall() == [(42, True)]


def test_a_webhook_that_fails_is_sent_again(order: Order, receiver: Receiver) -> None:
    assert order.step("charge")["attempt"] == 2
    first, second = receiver.at("/charge")
    assert first.body == second.body == {"amount": 4900, "currency": "eur"}
    ids = [call.headers["webhook-id"] for call in (first, second)]
    assert ids == [f"{order.run['id']}:charge"] * 2
    assert is_signed(first)
    assert is_signed(second)


def test_the_functions_worked_and_none_of_them_failed(
    order: Order, installed: Installation
) -> None:
    assert order.complaints == {name: [] for name in FUNCTIONS}
    for name in FUNCTIONS:
        assert order.metrics[name]["Invocations"] > 0
        assert installed.errors(name) == 0
    steps = {"StepsSucceeded": 4, "StepsFailed": 1}
    assert {name: order.metrics["executor"][name] for name in steps} == steps


@pytest.mark.usefixtures("order")
def test_no_hint_is_left_and_nothing_was_given_up(installed: Installation) -> None:
    installed.drain()
    assert installed.messages("DeadHints") == installed.messages("DeadTicks") == 0


def test_the_message_is_in_the_queue_of_the_user(order: Order, installed: Installation) -> None:
    sqs = installed.emulator.client("sqs")
    url = sqs.get_queue_url(QueueName="stepwell-dev-q-shop-emails")["QueueUrl"]
    (message,) = sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)["Messages"]
    assert json.loads(message["Body"]) == {"to": "ada"}
    assert order.run["output"] == {"msg_id": message["MessageId"]}
    (received,) = installed.ok("POST", "/queues/emails/messages/receive", {})["items"]
    assert received["body"] == {"to": "ada"}
    answer = installed.request("DELETE", f"/queues/emails/messages/{received['receipt']}")
    assert answer.status_code == 204, answer.text
    assert "Messages" not in sqs.receive_message(QueueUrl=url)


def test_the_same_key_starts_no_second_order(order: Order, installed: Installation) -> None:
    again = installed.request("POST", "/workflows/order/runs", {"idempotency_key": "order-42"})
    assert (again.status_code, again.json()["id"]) == (200, order.run["id"])


@pytest.mark.parametrize("token", ["swt_unknown", "-"])
def test_the_api_lets_nobody_in_without_a_token(installed: Installation, token: str) -> None:
    answer = installed.request("GET", "/workflows", token=token)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_without_its_permission_the_executor_fails_and_with_it_a_tick_saves_the_run(
    installed: Installation, order: Order
) -> None:
    """The hint is spent then: only the tick of the schedule can know of the run."""
    installed.publish("notice", {"key": "tell", "kind": "enqueue", "target": "emails"})
    with installed.without("executor", "dynamodb:UpdateItem"):
        run_id = installed.start("notice")
        run = installed.until_it_complains("executor", "notice", run_id)
        assert run["status"] == "pending"
        said = "\n".join(installed.complaints("executor"))
        assert "AccessDeniedException" in said
        assert "dynamodb:UpdateItem" in said
        assert installed.metrics("executor")["RunsFailed"] > 0
    run = installed.finish("notice", run_id)
    assert run["status"] == "succeeded"
    assert installed.metrics("tick")["Invocations"] > order.metrics["tick"]["Invocations"]
    assert installed.messages("DeadHints") == installed.messages("DeadTicks") == 0


def test_taking_it_away_leaves_nothing(installed: Installation, assembly: Path) -> None:
    said = take_away(installed.emulator, assembly)
    for stack in ("api", "compute", "data"):
        assert f"stepwell-dev-{stack}: deleted" in said
    assert "stays: " not in said
    tables = installed.emulator.client("dynamodb").list_tables()["TableNames"]
    functions = installed.emulator.client("lambda").list_functions()["Functions"]
    assert tables == []
    assert [one["FunctionName"] for one in functions] == ["reserve"]
