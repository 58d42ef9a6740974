"""What holds for every suite."""

from hypothesis import settings

from tests.open_files import watch_connections

# The same examples on every run, so that a failure repeats; no deadline, since a slow machine is
# no bug.
settings.register_profile("stepwell", derandomize=True, deadline=None)
settings.load_profile("stepwell")

watch_connections()
