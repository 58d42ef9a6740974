"""Run as a program: one attempt of the embedded home, alone in this process."""

import logging
import sys
from collections.abc import Callable
from contextlib import ExitStack

from stepwell_engine.adapters.process.child import serve
from stepwell_engine.adapters.process.system import SystemClock
from stepwell_engine.adapters.secrets.sealed import SealedSecrets, read_key
from stepwell_engine.adapters.sqlite.database import Database
from stepwell_engine.adapters.sqlite.runs import SqliteRuns
from stepwell_engine.core.run.attempt import Attempt, Deferred, Outcome
from stepwell_engine.errors import StoreError
from stepwell_engine.settings.embedded import LOG_FORMAT
from stepwell_engine.wiring.embedded import runners_of, stores_of
from stepwell_engine.wiring.jobs import Job


def run(attempt: Attempt, job: Job, begin: Callable[[], None]) -> Outcome:
    """Try once, over connections of this process's own to the host's data folder."""
    sys.path[:] = job.path
    logging.basicConfig(level=job.settings.log_level, format=LOG_FORMAT, stream=sys.stderr)

    def postgres(_: str) -> str:
        from stepwell_engine.adapters.postgres.cluster import PostgresUnavailable  # noqa: PLC0415

        if job.dsn is None:
            raise PostgresUnavailable(job.no_dsn)
        return job.dsn

    folder = job.settings.data
    with ExitStack() as opened:
        try:
            database = Database(folder / "stepwell.db", create=False)
            opened.callback(database.close)
            stores = stores_of(
                database, SqliteRuns(database), SealedSecrets(read_key(folder / "secret.key"))
            )
        except (StoreError, OSError) as error:
            return Deferred(f"the process that runs this step alone cannot read the data: {error}")
        runners = runners_of(job.settings, stores, SystemClock(), opened, postgres, [])
        begin()
        return runners[attempt.kind].run(attempt)


if __name__ == "__main__":
    serve(run)
