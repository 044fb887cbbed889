"""Five hundred clients for ten seconds, see crowd.py."""

from functools import partial

import alone
import crowd
import lib


def suite(report: lib.Report) -> None:
    crowd.prepare()
    report.case("500 clients at a time", partial(crowd.crowd, 500, 10))


if __name__ == "__main__":
    alone.enter()
    lib.main(suite)
