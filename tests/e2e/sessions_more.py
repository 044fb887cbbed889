"""sessions.py with every test, and with the real netserver."""

from functools import partial

import lib
import sessions

OTHERS: sessions.Tests = (
    ("TCP_STREAM", ()), ("TCP_SENDFILE", ()), ("TCP_RR", ()), ("TCP_CC", ()), ("UDP_RR", ()))


def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon, sessions.Door(daemon.port) as door:
        for test, specific in OTHERS:
            report.case(f"without plans: {sessions.FLOWS} flows of {test}",
                        partial(sessions.every_test, door.port, test, specific))
    try:
        real = lib.real_netperf()
    except LookupError as why:
        report.skip("the real netserver", str(why))
        return
    with lib.Daemon(program=str(real / "netserver"), grace=None) as daemon:
        sessions.suite_of(report, "stock", daemon.port, sessions.TESTS + OTHERS)


if __name__ == "__main__":
    lib.main(suite)
