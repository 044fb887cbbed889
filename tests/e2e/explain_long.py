"""Every planted cause of explain_bed.py, three runs each of which two have to name it."""

import explain_bed
import lib

RUNS = 3


def suite(report: lib.Report) -> None:
    explain_bed.bed(report, RUNS, [])


if __name__ == "__main__":
    lib.main(suite)
