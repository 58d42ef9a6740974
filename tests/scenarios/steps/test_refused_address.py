"""A webhook reaches no private network, in whatever spelling; on one machine, that machine."""

import pytest

from tests.scenarios.homes import Home


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1",
        "169.254.169.254",
        "2852039166",
        "0xa9.0xfe.0xa9.0xfe",
        "[::ffff:169.254.169.254]",
        "100.64.0.1",
    ],
)
def test_a_private_address_is_refused_without_a_retry(home: Home, host: str) -> None:
    home.publish("order", {"key": "pay", "kind": "webhook", "target": f"http://{host}/hook"})
    run = home.finish("order", home.start("order"))
    assert run["status"] == "failed"
    (step,) = run["steps"]
    assert (step["status"], step["attempt"]) == ("failed", 1)
    assert "no public address" in step["error"]
