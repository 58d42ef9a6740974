"""Steps of the kind webhook."""

from typing import Final

from stepwell_engine import limits
from stepwell_engine.adapters.acts import output_of
from stepwell_engine.adapters.http.client import Answer, HttpClient
from stepwell_engine.core import jsonvalue, signing
from stepwell_engine.core.outcome import Act, Failed, NotTried, Outcome
from stepwell_engine.errors import StoreError
from stepwell_engine.ports import Clock, Secrets

IDEMPOTENCY_KEY: Final = "idempotency-key"


class WebhookPerformer:
    """POSTs the payload. The output is `{"delivered": true, "status": 2xx}`."""

    def __init__(self, client: HttpClient, secrets: Secrets, clock: Clock) -> None:
        self._client = client
        self._secrets = secrets
        self._clock = clock

    def perform(self, act: Act) -> Outcome:
        """Deliver once."""
        body = jsonvalue.encode(act.payload)
        timestamp_s = self._clock.now() // limits.SECOND
        headers = {
            signing.ID_HEADER: act.effect_id,
            signing.TIMESTAMP_HEADER: str(timestamp_s),
            IDEMPOTENCY_KEY: act.effect_id,
        }
        if act.secret is not None:
            try:
                secret = self._secrets.open(act.secret, act.project)
                signature = signing.sign(secret, act.effect_id, timestamp_s, body)
            except ValueError as error:
                return Failed(f"the secret of the step cannot be used: {error}", retryable=False)
            except StoreError as error:
                return NotTried(f"the secret of the step cannot be opened now: {error}")
            headers[signing.SIGNATURE_HEADER] = signature
        answer = self._client.post(act.target, headers, body, act.timeout, reads_body=False)
        if not isinstance(answer, Answer):
            return answer
        return output_of({"delivered": True, "status": answer.status}, answer.where)
