"""Payloads are static: nothing of one step's output reaches another."""

from tests.scenarios.homes import Home
from tests.scenarios.receiver import Receiver
from tests.scenarios.step_builders import call, fan, hook, runs_of


def test_every_step_sends_the_payload_of_its_definition(home: Home, receiver: Receiver) -> None:
    payload = {"to": "{{steps.first.output}}", "n": [1, None]}
    home.publish("child", hook(receiver, "leaf", payload=2))
    home.publish(
        "order",
        hook(receiver, "first", payload={"n": 1}),
        *fan(hook(receiver, "inner", payload=payload)),
        call("child", payload=payload),
    )
    assert home.finish("order", home.start("order", input={"n": 9}))["status"] == "succeeded"
    sent = {request.path: request.body for request in receiver.calls}
    assert sent == {"/first": {"n": 1}, "/inner": payload, "/leaf": 2}
    (child,) = runs_of(home, "child")
    assert home.run("child", child)["input"] == payload
