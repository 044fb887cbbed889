"""Ours and the real netperf 2.7.0 with each other in the timed runs that take minutes: OMNI in all
directions, and every test with CPU figures, confidence intervals and interim results.
"""

import interop
import interop_more
import lib


def suite(report: lib.Report) -> None:
    interop.run_table(report, interop_more.long())


if __name__ == "__main__":
    lib.main(suite)
