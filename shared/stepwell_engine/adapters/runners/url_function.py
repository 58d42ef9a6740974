"""Functions by URL."""

from typing import Final

from stepwell_engine.adapters.http.client import Answer, HttpClient
from stepwell_engine.adapters.runners.attempts import event_of, output_from
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.adapters.runners.webhook import IDEMPOTENCY_KEY
from stepwell_engine.core.run.attempt import Attempt, Failed, Outcome
from stepwell_engine.core.values import jsonvalue

_SHOWN: Final = 60  # characters of a header


class UrlFunctions:
    """POSTs the event; the JSON in a 2xx answer is what the function returned."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def call(self, url: str, attempt: Attempt, deadline: Deadline) -> Outcome:
        """Call once."""
        headers = {IDEMPOTENCY_KEY: attempt.idempotency_key}
        answer = self._client.post(url, headers, jsonvalue.encode(event_of(attempt)), deadline)
        if not isinstance(answer, Answer):
            return answer
        what = f"what {answer.where} answered with {answer.status}"
        if answer.encoding and answer.body:
            return Failed(
                f"{what} has the Content-Encoding {answer.encoding[:_SHOWN]}: it must have none, "
                "as Accept-Encoding: identity asks for"
            )
        return output_from(answer.body, what)
