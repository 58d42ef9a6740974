"""What goes out over HTTP, in both homes."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network
from threading import RLock
from typing import TYPE_CHECKING

from stepwell_engine.core.run.attempt import Attempt, Outcome
from stepwell_engine.ports import Clock, Secrets
from stepwell_engine.wiring.lazy import not_loaded

if TYPE_CHECKING:
    from stepwell_engine.adapters.http.client import HttpClient
    from stepwell_engine.adapters.runners.deadline import Deadline
    from stepwell_engine.adapters.runners.url_function import UrlFunctions
    from stepwell_engine.adapters.runners.webhook import WebhookRunner


Network = IPv4Network | IPv6Network


class Outside:
    """Webhooks and functions by URL. Their libraries load with the first step that needs them."""

    def __init__(self, allowed: Sequence[Network], secrets: Secrets, clock: Clock) -> None:
        self._allowed = allowed
        self._secrets = secrets
        self._clock = clock
        self._adapters = ExitStack()
        self._lock = RLock()  # the first steps may come at once

    def run(self, attempt: Attempt) -> Outcome:
        """Deliver a webhook."""
        try:
            with self._lock:
                webhooks = self._webhooks
        except OSError as error:
            return not_loaded(error)
        return webhooks.run(attempt)

    def call(self, url: str, attempt: Attempt, deadline: "Deadline") -> Outcome:
        """Call a function by URL."""
        try:
            with self._lock:
                functions = self._functions
        except OSError as error:
            return not_loaded(error)
        return functions.call(url, attempt, deadline)

    def close(self) -> None:
        """Close the idle connections."""
        self._adapters.close()

    @cached_property
    def _client(self) -> "HttpClient":
        from stepwell_engine.adapters.http.client import HttpClient  # noqa: PLC0415
        from stepwell_engine.adapters.http.resolver import SystemResolver  # noqa: PLC0415
        from stepwell_engine.adapters.http.transport import GuardedAdapter  # noqa: PLC0415

        adapter = GuardedAdapter(self._allowed, SystemResolver())
        self._adapters.callback(adapter.close)
        return HttpClient(adapter, self._clock)

    @cached_property
    def _webhooks(self) -> "WebhookRunner":
        from stepwell_engine.adapters.runners.webhook import WebhookRunner  # noqa: PLC0415

        return WebhookRunner(self._client, self._secrets, self._clock)

    @cached_property
    def _functions(self) -> "UrlFunctions":
        from stepwell_engine.adapters.runners.url_function import UrlFunctions  # noqa: PLC0415

        return UrlFunctions(self._client)
