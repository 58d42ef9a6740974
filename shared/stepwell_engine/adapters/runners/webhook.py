"""Steps of the kind webhook."""

from typing import Final

from stepwell_engine import limits
from stepwell_engine.adapters.http.client import Answer, HttpClient
from stepwell_engine.adapters.runners.attempts import output_of, unseal
from stepwell_engine.adapters.runners.deadline import Deadline
from stepwell_engine.core.run.attempt import Attempt, Deferred, Failed, Outcome
from stepwell_engine.core.values import jsonvalue, signing
from stepwell_engine.ports import Clock, Secrets

IDEMPOTENCY_KEY: Final = "idempotency-key"

_SECRET: Final = "the secret of the step"  # noqa: S105  what it is called


class WebhookRunner:
    """POSTs the payload. The output is `{"delivered": true, "status": 2xx}`."""

    def __init__(self, client: HttpClient, secrets: Secrets, clock: Clock) -> None:
        self._client = client
        self._secrets = secrets
        self._clock = clock

    def run(self, attempt: Attempt) -> Outcome:
        """Deliver once."""
        deadline = Deadline.of(attempt, self._clock)
        body = jsonvalue.encode(attempt.payload)
        timestamp_s = self._clock.now() // limits.SECOND
        headers = {
            signing.ID_HEADER: attempt.idempotency_key,
            signing.TIMESTAMP_HEADER: str(timestamp_s),
            IDEMPOTENCY_KEY: attempt.idempotency_key,
        }
        if attempt.secret is not None:
            try:
                secret = unseal(self._secrets, attempt.secret, attempt, deadline, _SECRET)
                if isinstance(secret, Deferred):
                    return secret
                signature = signing.sign(secret, attempt.idempotency_key, timestamp_s, body)
            except ValueError as error:
                return Failed(f"{_SECRET} cannot be used: {error}", retryable=False)
            headers[signing.SIGNATURE_HEADER] = signature
        answer = self._client.post(attempt.target, headers, body, deadline, reads_body=False)
        if not isinstance(answer, Answer):
            return answer
        return output_of({"delivered": True, "status": answer.status}, answer.where)
