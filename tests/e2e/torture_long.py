"""Ten thousand clients that do everything wrong, or as many as NP_TORTURE says."""

import os

os.environ.setdefault("NP_TORTURE", "10000")

import torture  # noqa: E402
import lib  # noqa: E402

if __name__ == "__main__":
    torture.move_in()
    lib.main(torture.suite)
