"""Where the programs are that came with these scripts."""

import os
import sys


def find(name: str, variable: str, *places: str, here: str = "") -> str:
    """The one that the environment names, else the one in a folder beside that of the script (here): of a
    build tree, or as installed; "" where there is none."""
    named = os.environ.get(variable)
    here = here or os.path.dirname(os.path.realpath(sys.argv[0]))
    for path in [named] if named else [os.path.join(here, "..", place, name) for place in places]:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    return ""
