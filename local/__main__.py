"""`python -m local up`: Stepwell on this machine."""

import argparse
import logging
import sys
from typing import Final

from local.credentials import Credentials
from local.host import CannotStart, Signals, up
from stepwell_engine.settings.embedded import (
    LOG_FORMAT,
    BadSetting,
    Settings,
    read,
    unknown,
    variable_of,
)

CANNOT_START: Final = 2


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code."""
    given = vars(_parser().parse_args(arguments))
    given.pop("command")
    try:
        settings = read(given)
        logging.basicConfig(
            level=settings.log_level,
            format=LOG_FORMAT,
            stream=sys.stderr,
        )
        for sentence in unknown():
            logging.getLogger(__name__).warning("%s", sentence)
        signals = Signals()
        up(settings, signals, _show)
        signals.ignore()
    except (BadSetting, CannotStart) as error:
        print(f"stepwell: {error}", file=sys.stderr)
        return CANNOT_START
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local", description="Stepwell, embedded")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser(
        "up",
        help="run the engine on this machine",
        description="Run the engine in this process: the API on 127.0.0.1, all state in one "
        "folder. Runs survive whatever ends the process.",
    )
    for name, field in Settings.model_fields.items():
        several = {"nargs": "+", "metavar": "DIR"} if name == "functions" else {}
        command.add_argument(
            "--" + name.replace("_", "-"),
            help=f"{field.description} (default {_default(field.default)}; {variable_of(name)})",
            **several,  # type: ignore[arg-type]
        )
    return parser


def _default(value: object) -> object:
    return "none" if value in ((), None) else value


def _show(found: Credentials) -> None:
    print(f"url      {found.url}\nproject  {found.project}\ntoken    {found.token}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
