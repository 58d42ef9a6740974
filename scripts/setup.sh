#!/bin/sh
# Bring .venv in line with requirements.lock. `make` runs this, from the root of the repository.
# Safe to run again, after an interruption too; needs no network once everything is installed.
set -eu

fits='import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
python=.venv/bin/python

if ! "$python" -c "$fits" >/dev/null 2>&1; then
    found=
    # A name on PATH says little (version managers leave empty shims there): each one is tried.
    for candidate in python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c "$fits" >/dev/null 2>&1; then
            found=$candidate
            break
        fi
    done
    if [ -z "$found" ]; then
        echo "Stepwell needs Python 3.11, 3.12 or 3.13 with its venv module (Debian, Ubuntu:" \
            "package python3-venv), and none of python3, python3.13, python3.12 and python3.11" \
            "on PATH is that." >&2
        exit 1
    fi
    echo "Setting up .venv with $("$found" --version) ..."
    "$found" -m venv --clear .venv
fi

# uv itself comes out of the lock file too, at its pinned version and with its hashes.
awk '/^uv==/ { found = 1 } found { print } found && !/\\$/ { exit }' requirements.lock >.venv/uv.lock
"$python" -m pip install --quiet --require-hashes --requirement .venv/uv.lock

# uv and pip read different settings: where only pip knows the way to a mirror, pip installs.
"$python" -m uv pip sync --quiet --python "$python" --require-hashes requirements.lock ||
    "$python" -m pip install --quiet --require-hashes --requirement requirements.lock

"$python" -m uv pip install --quiet --python "$python" \
    --no-deps --no-build-isolation --editable .
