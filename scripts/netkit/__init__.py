"""What netlab, netsweep and netreport share: results, ceilings, tables, plots."""

import os
import sys
from typing import Callable

VERSION = "0.1.0"   # as in configure.ac


def run(main: "Callable[[], int]") -> int:
    """A script's main(), with its exit status. A reader that had enough of the output is no fault."""
    status = 0
    try:
        try:
            status = main()
        except SystemExit as fault:     # argparse's, which may have printed its help
            status = fault.code if isinstance(fault.code, int) else 0
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    return status


def drop_output() -> None:
    """What is printed from now on goes nowhere: nobody reads it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
