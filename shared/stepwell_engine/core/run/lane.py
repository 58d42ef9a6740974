"""Where a worker runs, which says what the loss of it tells about the run that it held."""

from enum import StrEnum


class Lane(StrEnum):
    """Where a worker runs.

    HOST: in a process with others, where the attempts of a suspect run in a child process each. A
    loss of the host tells nothing. SHARED: in a process with others that has no such child: no
    place for suspects. ALONE: in a process that has one run at a time: its loss counts against the
    attempt in turn.
    """

    HOST = "host"
    SHARED = "shared"
    ALONE = "alone"
