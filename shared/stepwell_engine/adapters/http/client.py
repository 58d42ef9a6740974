"""POST requests to the outside world, and failed ones in words."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

import requests
from requests.structures import CaseInsensitiveDict

from stepwell_engine import limits
from stepwell_engine.adapters.acts import excerpt, timed_out
from stepwell_engine.adapters.http.egress import EgressRefused, NameUnresolved, parse
from stepwell_engine.adapters.http.transport import GuardedAdapter
from stepwell_engine.core.outcome import Failed
from stepwell_engine.ports import Clock

_USER_AGENT: Final = "Stepwell/1"
_SECONDS: Final = re.compile(r"[0-9]{1,10}", re.A)


@dataclass(frozen=True, slots=True)
class Answer:
    """A 2xx answer. `body` is cut after MAX_OUTPUT + 1 bytes. `where` names the request."""

    status: int
    body: bytes
    where: str


class HttpClient:
    """Posts JSON through the egress guard."""

    def __init__(self, adapter: GuardedAdapter, clock: Clock) -> None:
        self._adapter = adapter
        self._clock = clock

    def post(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: int
    ) -> Answer | Failed:
        """Send a JSON body, within `timeout` ms in all. Everything but 2xx is a failure."""
        request = requests.PreparedRequest()
        # Set by hand: what requests prepares beyond this (cookies, netrc, the URL again) is not
        # wanted here and costs as much as the exchange itself.
        request.method = "POST"
        request.url = url
        request.headers = CaseInsensitiveDict(
            {
                "content-type": "application/json",
                "content-length": str(len(body)),
                "accept-encoding": "identity",
                "user-agent": _USER_AGENT,
                **headers,
            }
        )
        request.body = body
        try:
            response = self._adapter.send(request, timeout=timeout / limits.SECOND)
        except EgressRefused as error:
            return Failed(f"the URL was refused: {error}", retryable=False)
        except NameUnresolved as error:
            return Failed(str(error))
        except requests.Timeout:
            return timed_out(_where(url), timeout)
        except requests.exceptions.SSLError as error:
            return Failed(f"{_where(url)} failed: TLS: {error}")
        except requests.ConnectionError as error:
            return Failed(f"{_where(url)} failed: {error}")
        answer = Answer(response.status_code, response.content, _where(url))
        if requests.codes.ok <= answer.status < requests.codes.multiple_choices:
            return answer
        return self._refused(answer, response.headers)

    def _refused(self, answer: Answer, headers: Mapping[str, str]) -> Failed:
        text = f"{answer.where} answered {answer.status}"
        if requests.codes.multiple_choices <= answer.status < requests.codes.bad_request:
            text += f", a redirect to {headers.get('location', 'nowhere')[:200]}"
            text += ", and redirects are not followed: use the final URL"
        elif answer.body:
            text += f": {excerpt(answer.body)}"
        return Failed(text, retry_after=self._retry_after(headers.get("retry-after", "")))

    def _retry_after(self, value: str) -> int | None:
        """The header `Retry-After`, seconds or a date, in ms; None if absent or neither."""
        value = value.strip()
        if _SECONDS.fullmatch(value):
            return int(value) * limits.SECOND
        try:
            at = parsedate_to_datetime(value).timestamp() * limits.SECOND
        except (ValueError, OverflowError):
            return None
        return max(0, round(at) - self._clock.now())


def _where(url: str) -> str:
    return f"POST {parse(url)}"
