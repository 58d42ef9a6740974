"""Conditional updates of a head that return what they met.

These are low-level calls because a refusal must return the item as it stands, and the reasons of
a cancelled transaction must be told apart. All names are the model's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stepwell_engine.adapters.dynamodb.client import DynamoDB, Rejected
from stepwell_engine.adapters.dynamodb.heads import from_item, key_of
from stepwell_engine.core.run.head import Head
from stepwell_engine.core.values.units import RunId
from stepwell_engine.errors import Unavailable
from stepwell_engine.ports import Done, Refused, Written

TURNS: Final = 8  # how often a head may change hands during one call


@dataclass(frozen=True, slots=True)
class Form:
    """One of the forms that a write has. Its condition holds only for the heads that it fits."""

    update: str
    condition: str
    values: Mapping[str, Any] = field(default_factory=dict)


class Updates:
    """The updates of heads in a table."""

    def __init__(self, database: DynamoDB, table: str) -> None:
        self._database = database
        self._table = table

    def _fitting(
        self,
        run_id: RunId,
        forms: Mapping[str, Form],
        values: Mapping[str, Any],
        first: str,
        choose: Callable[[Head], str],
        names: Mapping[str, str] | None = None,
    ) -> Written:
        """Write the form that fits the head as it is stored. `first` and `choose` name forms.

        An update expression cannot branch: whether it sets wake_at, removes it or leaves it alone
        cannot depend on another attribute of the item. So such a write has one form for each case,
        and the form's condition says which case it is for. Reading first would cost a read unit
        each time, so the likely form goes out blind. A refusal does not say which part of the
        condition failed, but it returns the head as it stood (ReturnValuesOnConditionCheckFailure),
        from which `choose` tells the form that fits:

        - Another one: the guess was wrong. Try the one that fits.
        - The one that was refused: the guess was right, so a condition of the write itself (live,
          the lease, the commit number) does not hold. The write is refused for good.

        The case may change again between two tries (a lease is taken, a parent notified), so there
        may be more than two. At most one is written, for every form is conditional as a whole.
        """
        name = first
        for _ in range(TURNS):
            form = forms[name]
            written = self._update(
                run_id, form.update, form.condition, {**values, **form.values}, names
            )
            if isinstance(written, Done) or written.head is None:
                return written
            fits = choose(written.head)
            if fits == name:
                return written
            name = fits
        raise restless(run_id)

    def _update(
        self,
        run_id: RunId,
        update: str,
        condition: str,
        values: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
    ) -> Written:
        written = self._database.update(
            self._table,
            key_of(run_id),
            UpdateExpression=update,
            ConditionExpression=condition,
            ExpressionAttributeValues=values,
            **({"ExpressionAttributeNames": names} if names else {}),
        )
        if isinstance(written, Rejected):
            return Refused(None if written.item is None else from_item(written.item))
        return Done(from_item(written))


def restless(run_id: RunId) -> Unavailable:
    """The error of a write that met another head at each try."""
    return Unavailable(f"run {run_id} changed hands {TURNS} times during one call")
