# netvm: modules sctp
"""The guest itself: what a guest test can count on."""

import os
import shutil

import lib


def suite(report: lib.Report) -> None:
    def modules() -> None:
        with open("/proc/net/protocols", encoding="ascii") as file:
            assert "SCTP" in file.read()

    def programs() -> None:
        for name in ("netperf", "netserver", "netlab", "ip", "tc", "ss", "modprobe"):
            assert shutil.which(name), name

    report.case("the module named is loaded", modules)
    report.case("our programs and the system's are in the path", programs)
    report.check("it runs as root", os.geteuid() == 0)
    with lib.Daemon() as daemon:
        got = lib.run(lib.command(daemon.port, "-l", "0.3"), timeout=60)
        report.check("TCP_STREAM over loopback", got.rc == 0, got.err)


lib.main(suite)
