"""Forty keepers of settings killed, all sysctls, and more of the suite nic: see netgate_keeper.py."""

import netgate_keeper
import lib


def suite(report: lib.Report) -> None:
    report.case("settings of the suite", netgate_keeper.settings_of_the_suite)
    report.case("as the kernel runs it", netgate_keeper.as_the_kernel_runs_it)
    report.case("a gate that is killed", netgate_keeper.a_gate_that_is_killed)
    report.case("programs killed with their watchdogs", netgate_keeper.programs_killed_with_their_watchdogs)
    report.case("a slot by way of a namespace", netgate_keeper.by_namespace)
    netgate_keeper.kills(report, 40)
    report.case("sysctls come back", netgate_keeper.sysctls_come_back)


if __name__ == "__main__":
    netgate_keeper.enter()
    lib.main(suite)
