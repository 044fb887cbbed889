"""The Python that has what a script needs.

The first python3 in PATH need not be the distribution's, and then has none of the distribution's
modules: need() goes over to that one rather than to ask for what is installed already.
"""

import importlib
import os
import subprocess
import sys
from types import ModuleType

from netkit import Fault

SYSTEM_PYTHON = "/usr/bin/python3"
TRIED = "PLUMBLINE_PYTHON_TRIED"    # in the environment of a script that was started again,
WAS_TRIED = os.environ.pop(TRIED, None)     # and not in that of what it starts


class MissingModule(Fault):
    """Neither this Python nor the distribution's has it; the words name the package, or say why."""


def has(python: str, module: str) -> bool:
    """Whether an interpreter can import a module, and not only find it."""
    try:
        done = subprocess.run([python, "-c", f"import {module}"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def need(module: str, package: str, purpose: str = "") -> ModuleType:
    """The module, imported. When this Python lacks it and the distribution's has it, the script
    starts again under that one and does not return: call this before anything is read from standard
    input, written or begun. Raises MissingModule, whose words are the line to print.
    purpose says what wants it, as in "--plot"."""
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
