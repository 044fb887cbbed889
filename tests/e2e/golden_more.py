"""golden.py with every command at its own length, and a comparer that is tried with every change."""

import sys

sys.argv.append("--timed")  # before golden reads it

import golden  # noqa: E402
import lib  # noqa: E402

if __name__ == "__main__":
    lib.main(golden.suite)
