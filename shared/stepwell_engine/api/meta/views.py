"""What the API shows of itself."""

from typing import Literal

from typing_extensions import TypedDict


class HealthView(TypedDict):
    """The API answers."""

    status: Literal["ok"]
