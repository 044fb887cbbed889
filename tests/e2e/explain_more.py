"""--explain over loopback as in explain.py, every test at full speed, and against netperf's netserver."""

import explain
import lib


def suite(report: lib.Report) -> None:
    explain.all_of_it(report, (), explain.OF_STOCK, at_once=1)


if __name__ == "__main__":
    lib.main(suite)
