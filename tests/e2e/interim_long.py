"""A hundred interim results in ten seconds, in each style of output and in every sort of test."""

import interim
import lib


def suite(report: lib.Report) -> None:
    runs = [("TCP_STREAM", style) for style in interim.STYLES]
    runs += [(test, interim.STYLES[0]) for test in ("TCP_MAERTS", "TCP_RR", "TCP_CRR", "UDP_RR",
                                                    "UDP_STREAM")]
    interim.measure(report, runs, 10)


if __name__ == "__main__":
    lib.main(suite)
