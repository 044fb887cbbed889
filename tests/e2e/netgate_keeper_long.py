"""Forty keepers of settings killed, see netgate_keeper.py."""

import netgate_keeper
import lib


def suite(report: lib.Report) -> None:
    netgate_keeper.kills(report, 40)


if __name__ == "__main__":
    netgate_keeper.enter()
    lib.main(suite)
