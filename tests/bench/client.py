"""The benchmark's client: what it costs itself must not be what is measured."""

import http.client
from contextlib import AbstractContextManager, nullcontext

from examples.order_pipeline.api import Access, Api


class KeptApi(Api):
    """An Api over one connection that stays open, for one thread."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._kept = self._connection()

    def close(self) -> None:
        """Close the connection."""
        self._kept.close()

    def _connected(self) -> AbstractContextManager[http.client.HTTPConnection]:
        return nullcontext(self._kept)
