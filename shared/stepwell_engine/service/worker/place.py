"""The one place of a process in which a suspect may run."""

from stepwell_engine.core.values.subject import Subject
from stepwell_engine.ports import Dispatcher, Isolation


class Place:
    """The place of the process's isolation, for one run while a worker is at it.

    First come, first served: a run that comes while it is taken stands in line, and is hinted when
    it is its turn. Without an isolation there is room for everybody.
    """

    def __init__(self, isolation: Isolation | None, run: Subject, dispatcher: Dispatcher) -> None:
        self._isolation = isolation
        self._run = run
        self._dispatcher = dispatcher
        self._waits = False
        self.taken = False

    def enter(self) -> bool:
        """Take the place; False: the run stands in line for it."""
        self.taken = self._isolation is None or self._isolation.enter(self._run)
        self._waits = not self.taken
        first = self._isolation.turn() if self._isolation is not None and self._waits else None
        if first is not None:  # it is late: its hint was lost, perhaps
            self._dispatcher.hint(first)
        return self.taken

    def leave(self) -> None:
        """Give the place back, if it is taken. Unless it waits, the run leaves the line, too.

        One that is hinted and does not come, for it has ended, must not keep the others waiting.
        """
        taken, self.taken = self.taken, False
        if self._isolation is None or self._waits:
            return
        following = self._isolation.leave() if taken else self._isolation.forget(self._run)
        if following is not None:
            self._dispatcher.hint(following)
