"""The attacks of attacks.py in full size."""

import os

os.environ["NP_ATTACKS"] = "long"

import attacks  # noqa: E402 (which reads it)
import lib  # noqa: E402

if __name__ == "__main__":
    lib.netperf(), lib.netserver()
    lib.main(attacks.suite)
