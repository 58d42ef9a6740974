"""What the API shows of itself."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict


class HealthView(TypedDict):
    """The API answers. `degraded`: runs stand still, as the store refuses what their workers
    write, for the `reason`. They go on by themselves when it takes that.
    """

    status: Literal["ok", "degraded"]
    reason: NotRequired[str]
