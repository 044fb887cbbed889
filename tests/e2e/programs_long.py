"""programs.py in full size."""

import os

os.environ["NP_PROGRAMS"] = "long"

import programs  # noqa: E402 (which reads it)
import lib  # noqa: E402

if __name__ == "__main__":
    lib.netperf(), lib.netserver()
    lib.main(programs.suite)
