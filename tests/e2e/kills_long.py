"""Two hundred kills at random moments, see kills.py."""

import alone
import kills
import lib


def suite(report: lib.Report) -> None:
    lib.netperf(), lib.netserver()
    kills.kill_many(report, 200)


if __name__ == "__main__":
    alone.enter()
    lib.main(suite)
