"""POST requests to the outside world, and failed ones in words."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

import requests
from requests.structures import CaseInsensitiveDict

from stepwell_engine import limits
from stepwell_engine.adapters.http.egress import EgressRefused, NameUnresolved, parse
from stepwell_engine.adapters.http.transport import GuardedAdapter, HostShort, TooSlow
from stepwell_engine.adapters.runners.attempts import deferred, excerpt, timed_out
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.run.attempt import Deferred, Failed
from stepwell_engine.ports import Clock

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_USER_AGENT: Final = "Stepwell/1"
_SECONDS: Final = re.compile(r"0*([0-9]+)", re.A)
_MAX_DIGITS: Final = 10  # 300 years: more is as good as that


@dataclass(frozen=True, slots=True)
class Answer:
    """A 2xx answer. `body` is cut after MAX_RAW_OUTPUT + 1 bytes; what came soon of one that is not
    needed. `where` names the request, `encoding` is the Content-Encoding, "" for none.
    """

    status: int
    body: bytes
    where: str
    encoding: str = ""


class HttpClient:
    """Posts JSON through the egress guard."""

    def __init__(self, adapter: GuardedAdapter, clock: Clock) -> None:
        self._adapter = adapter
        self._clock = clock

    def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        deadline: Deadline,
        *,
        reads_body: bool = True,
    ) -> Answer | Failed | Deferred:
        """Send a JSON body and take the answer by the deadline. Everything but 2xx is a failure.

        Without `reads_body` the status alone decides: the body of the answer may never end.
        """
        if deadline.passed():
            return deferred(deadline)
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
            response = self._adapter.send(request, stream=not reads_body, timeout=deadline.seconds)
        except HostShort as error:
            return Deferred(f"{_where(url)} was not sent: {error}")
        except EgressRefused as error:
            return Failed(f"the URL was refused: {error}", retryable=False)
        except NameUnresolved as error:
            return Failed(str(error))
        except TooSlow as error:
            deadline.looked_up(f"resolving {parse(url).host}", error.resolving)
            return timed_out(_where(url), deadline)
        except requests.exceptions.SSLError as error:
            return Failed(f"{_where(url)} failed: TLS: {error}")
        except requests.ConnectionError as error:
            return Failed(f"{_where(url)} failed: {error}")
        encoding = response.headers.get("content-encoding", "").strip()
        if encoding.lower() == "identity":
            encoding = ""
        answer = Answer(response.status_code, response.content, _where(url), encoding)
        if requests.codes.ok <= answer.status < requests.codes.multiple_choices:
            return answer
        return self._refused(answer, response.headers)

    def _refused(self, answer: Answer, headers: Mapping[str, str]) -> Failed:
        text = f"{answer.where} answered {answer.status}"
        if answer.status in _REDIRECTS and "location" in headers:
            text += f", a redirect to {headers['location'][:200]}"
            text += ", and redirects are not followed: use the final URL"
        elif answer.body:
            text += f": {excerpt(answer.body)}"
        return Failed(text, retry_after=self._retry_after(headers.get("retry-after", "")))

    def _retry_after(self, value: str) -> int | None:
        """The header `Retry-After`, seconds or a date, in ms; None if absent or neither."""
        value = value.strip()
        seconds = _SECONDS.fullmatch(value)
        if seconds is not None:
            digits = seconds[1]
            return (int(digits) if len(digits) <= _MAX_DIGITS else 10**_MAX_DIGITS) * limits.SECOND
        try:
            at = parsedate_to_datetime(value).timestamp() * limits.SECOND
        except (ValueError, OverflowError):
            return None
        return max(0, round(at) - self._clock.now())


def _where(url: str) -> str:
    return f"POST {parse(url)}"
