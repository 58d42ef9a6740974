#!/bin/sh
# Bring .venv-e2e in line with requirements-e2e.lock. `make` runs this, from the root of the
# repository, when .venv is ready. Safe to run again, after an interruption too; needs no network
# once everything is installed.
set -eu

python=.venv-e2e/bin/python
version='import sys; print(sys.version)'

if [ "$("$python" -c "$version" 2>/dev/null)" != "$(.venv/bin/python -c "$version")" ]; then
    echo "Setting up .venv-e2e, for the emulator of AWS ..."
    .venv/bin/python -m venv --clear .venv-e2e
fi

# As in setup.sh: where only pip knows the way to a mirror, pip installs.
.venv/bin/python -m uv pip sync --quiet --python "$python" --require-hashes requirements-e2e.lock ||
    "$python" -m pip install --quiet --require-hashes --requirement requirements-e2e.lock
