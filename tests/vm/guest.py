# netvm: modules sctp
"""The guest itself: what a guest test can count on."""

import os
import subprocess

import lib


def suite(report: lib.Report) -> None:
    def modules() -> None:
        with open("/proc/net/protocols", encoding="ascii") as file:
            assert "SCTP" in file.read()

    def programs() -> None:
        for name in ("netperf", "netserver", "netlab", "ip", "tc", "ss", "modprobe"):
            assert lib.run(["which", name], 20).rc == 0, name

    report.case("the module named is loaded", modules)
    report.case("our programs and the system's are in the path", programs)
    report.check("it runs as root", os.geteuid() == 0)
    with lib.Daemon() as daemon:
        got = lib.run([lib.netperf(), "-H", "127.0.0.1", "-p", str(daemon.port), "-l", "1"], timeout=60)
        report.check("TCP_STREAM over loopback", got.rc == 0, got.err)
    got = lib.run(["netlab", "up", "--delay", "5ms", "--rate", "none"], 60)
    report.check("a lab with netem", got.rc == 0 and "(netem)" in got.out, got.err)
    subprocess.run(["netlab", "down"], check=False, stdout=subprocess.DEVNULL)


lib.main(suite)
