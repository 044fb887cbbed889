"""Finds a Python that has a script's modules: the distribution's may have them if the first one in PATH lacks them."""

import importlib
import os
import subprocess
import sys
from types import ModuleType

from netkit import Fault

SYSTEM_PYTHON = "/usr/bin/python3"
TRIED = "PLUMBLINE_PYTHON_TRIED"    # set in the environment of a script that was restarted,
WAS_TRIED = os.environ.pop(TRIED, None)     # but not for its child processes


class MissingModule(Fault):
    """Neither this Python nor the distribution's has the module; the message names the package, or says why."""


def has(python: str, module: str) -> bool:
    """Whether an interpreter can import a module, rather than only find it."""
    try:
        done = subprocess.run([python, "-c", f"import {module}"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def need(module: str, package: str, purpose: str = "") -> ModuleType:
    """Import and return a module. May restart the script in the distribution's Python: call this before anything is
    read from stdin, written or started. Raises MissingModule; `purpose` ("--plot") is what needs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name in (module, module.split(".")[0])
        why = f"not installed: apt-get install {package}" if missing else f"installed and cannot be imported: {error}"
    if not WAS_TRIED and os.path.realpath(SYSTEM_PYTHON) != os.path.realpath(sys.executable) and has(SYSTEM_PYTHON, module):
        os.environ[TRIED] = module
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, os.path.abspath(sys.argv[0]), *sys.argv[1:]])
    raise MissingModule(f"{purpose + ' needs' if purpose else 'needs'} Python's {module}, which is {why}")
