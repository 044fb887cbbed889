"""Ours and the real netperf 2.7.0 with each other as in interop_more.py, for every test: CPU figures,
confidence intervals, interim results.
"""

import interop
import interop_more
import lib


def suite(report: lib.Report) -> None:
    interop.run_table(report, interop_more.middle())


if __name__ == "__main__":
    lib.main(suite)
