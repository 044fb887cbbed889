"""The parts that netlab, netsweep, netgate and netreport share: results, ceilings, tables, plots."""

import argparse
import importlib.machinery
import importlib.util
import io
import math
import os
import re
import signal
import sys
from typing import Any, Callable, NoReturn, Optional

if sys.version_info < (3, 9):
    sys.exit("%s needs Python 3.9 or later, and this is %d.%d: python3.9 %s ... may do" % (
        os.path.basename(sys.argv[0]), *sys.version_info[:2], sys.argv[0]))

VERSION = "0.1.0"   # as in NEWS; make install replaces it with the version of the commit


class Fault(Exception):
    """A failure that is reported to the user in one line; `status` is the exit status."""
    status = 1


class UsageError(Fault):
    """Invalid options or values."""
    status = 2


class Interrupted(Exception):
    """Raised when a signal asks the program to end; its number is the first argument."""


class Parser(argparse.ArgumentParser):
    """Reports errors in one line. An action's member `values` says what scripts/mkdoc completes for its argument."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog.split()[0]}: {message} (see {self.prog} --help)", file=sys.stderr)
        sys.exit(2)

    def print_help(self, file: Any = None) -> None:     # argparse's ignores a full disk
        print(self.format_help(), end="", file=file)


def script_parser(name: str, description: str, examples: str, usage: Optional[str] = None) -> Parser:
    top = Parser(prog=name, usage=usage, description=description, epilog=examples, allow_abbrev=False,
                 formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--version", action="version", version=f"%(prog)s (plumbline) {VERSION}")
    return top


def number(what: str, least: float, most: float, whole: bool = False) -> "Callable[[str], Any]":
    """An argument type: a number within limits."""
    def read(text: str) -> float:
        try:
            value = float(text) if not whole else int(text) if re.fullmatch("-?[0-9]+", text) else None
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            limits = f"{least} to {most}" if whole else f"{least:g} to {most:g}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a {what} ({limits})")
        return value
    return read


def quantity(what: str, read: "Callable[[str, bool], Optional[float]]", example: str, least: float = 0.0,
             most: float = math.inf) -> "Callable[[str], float]":
    """An argument type: a quantity with a unit, parsed by units.py."""
    def found(text: str) -> float:
        value = read(text, True)
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a {what} (try {example})")
        return value
    return found


def script(folder: str, name: str, program: str = "") -> Any:
    """Load a script as a module, for a program of another name."""
    loader = importlib.machinery.SourceFileLoader(program or name, os.path.join(folder, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(program or name, loader))  # type: ignore[arg-type]
    loader.exec_module(module)
    return module


def run(main: "Callable[..., int]", *args: Any) -> int:
    """Run a script's main() and return the exit status. A fault becomes a line on stderr. A reader that closed the
    pipe is no fault, but a closed or full output is. Characters that the output's encoding lacks are escaped."""
    from netkit import progress     # it imports this module
    status, name = 0, os.path.basename(sys.argv[0]) if main.__module__ == "__main__" else main.__module__
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")
    if sys.stdout is None:
        print(f"{name}: standard output is closed", file=sys.stderr)
        return 1
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            status = main(*args)
        except SystemExit as fault:     # from argparse, which may have printed its help
            status = fault.code if isinstance(fault.code, int) else 0
        except Fault as fault:
            progress.say(name, str(fault))
            status = fault.status
        except (Interrupted, KeyboardInterrupt, RuntimeError) as fault:
            if isinstance(fault, RuntimeError) and not isinstance(fault.__cause__, KeyboardInterrupt):
                raise       # before 3.12, Python would otherwise continue to create a class
            progress.say(name, "interrupted")
            status = 128 + (fault.args[0] if isinstance(fault, Interrupted) else signal.SIGINT)
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    except OSError as fault:
        if fault.filename:
            raise
        drop_output()
        if not status:
            print(f"{name}: standard output: {fault.strerror}", file=sys.stderr)
        status = status or 1
    return status


def drop_output() -> None:
    """Redirect stdout to /dev/null: there is no reader any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
