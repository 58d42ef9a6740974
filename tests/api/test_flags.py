"""Parameters of a query string that are true or false."""

import pytest

from tests.api.home import Home, refused


@pytest.mark.parametrize("given", ["yes", "1", "True", "TRUE", "on", ""])
@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/queues/q/messages", "archived"),
        ("PUT", "/workflows/orders", "validate"),
        ("POST", "/workflows/orders/runs/a/cancel", "cascade"),
    ],
)
def test_a_flag_is_true_or_false(home: Home, given: str, method: str, path: str, name: str) -> None:
    answer = home.call(method, path, {} if method == "PUT" else None, query={name: given})
    text = refused(answer, "invalid_request")
    assert f"?{name} must be true or false" in text
