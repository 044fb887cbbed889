"""Every planted cause of explain_bed.py once."""

import explain_bed
import lib

RUNS = 1


def suite(report: lib.Report) -> None:
    explain_bed.bed(report, RUNS, [])


if __name__ == "__main__":
    lib.main(suite)
