"""--beside: transactions that run before and during a test. Their latency includes waiting behind the test's load; a
load that has died counts for nothing.
"""

import math
import os
import time
from functools import partial
from typing import Any, Dict, List

import lib

LINKED, RATE, PATIENCE = "10.77.0.2", 200, 60

REFUSED = (
    ("--beside TCP_STREAM", ("--beside", "TCP_STREAM", "requests and responses")),
    ("--beside WHAT:10", ("--beside", "WHAT")),
    ("--beside TCP_RR:often", ("--beside", "often")),
    ("--beside TCP_RR:0", ("--beside", "1 to 10000000")),
    ("--beside TCP_RR:auto", ("--beside TCP_RR:auto", "TCP_RR:100")),
    ("--beside STREAM_RR", ("--beside", "STREAM_RR")),
    ("--beside TCP_RR -l -1000000", ("--beside", "-l")),
    ("--beside TCP_RR -N", ("--beside", "-N")),
)


def client(port: int, *args: str, host: str = "127.0.0.1") -> "List[str]":
    return lib.command(port, "--json", *args, host=host)


def figures_of(got: lib.Result, probe: str, idle: int, loaded: int) -> "Dict[str, Any]":
    """The figures of a document whose histograms hold the due number, within six standard deviations of a Poisson
    process."""
    assert got.rc == 0, got
    document = lib.document(got.out)
    beside, final = document["beside"], document["final"]
    assert (beside["test"], beside["rate_per_s"]) == (probe, RATE), beside
    for part, due in (("idle", idle), ("loaded", loaded)):
        count = sum(n for _, n in beside[part]["cells"])
        assert count == beside[part]["count"] and abs(count - due) < 6 * due ** 0.5, (part, count, due)
    assert final["LOAD_DIED"] != "no" or (final["LOADED_P50_LATENCY"] or 0) <= (
        final["LOADED_P99_LATENCY"] or math.inf), final     # null: it was never answered
    return final


def beside_any_test(port: int, probe: str, *args: str) -> str:
    got = lib.run(client(port, *args, "-l", "1", *lib.PACED, "--beside", f"{probe}:{RATE}"), PATIENCE)
    final = figures_of(got, probe, RATE, RATE)
    assert final["LOAD_DIED"] == "no", final
    if final["LOADED_UNANSWERED"]:
        assert final["DISTURBED_SHARE"] > 0.5, final
        return f"on a busy machine {final['LOADED_UNANSWERED']} were not answered"
    assert 0 < final["LOADED_RPM"] <= 60e6 / final["LOADED_P50_LATENCY"] * 2, final
    return f"{final['IDLE_P50_LATENCY']:.0f} us idle, {final['LOADED_P50_LATENCY']:.0f} us loaded"


def a_paced_load_pauses(port: int) -> None:
    got = lib.run(client(port, "-l", "5", "-b", "8", "-w", "2s", "--beside", f"TCP_RR:{RATE}", "--", "-m", "1000"), PATIENCE)
    final = figures_of(got, "TCP_RR", 5 * RATE, 5 * RATE)
    assert final["LOAD_DIED"] == "no" and final["LOADED_RPM"], final


def iterations_are_one(port: int) -> None:
    """The probe runs alone once, and then beside each iteration."""
    got = lib.run(client(port, "-l", "1", "-i", "3,3", "--beside", f"UDP_RR:{RATE}"), PATIENCE)
    figures_of(got, "UDP_RR", RATE, 3 * RATE)


def it_says_so_below_a_table(port: int) -> None:
    for more in ([], ["--both"]):       # --both prints the omni table
        got = lib.run([lib.netperf(), "-p", str(port), "-l", "1", "--beside", "TCP_RR", *more], PATIENCE)
        assert got.rc == 0 and " us, P99 " in got.err and "; under load P50" in got.err, got
    human = lib.run([lib.netperf(), "-p", str(port), "-l", "1", "--beside", "TCP_RR", "--human"], PATIENCE)
    words = " ".join(human.out.split())
    assert human.rc == 0 and "Beside idle P50" in words and "round trips a minute; loaded P50" in words, human


def a_netserver_of_one_session(test: str, *args: str) -> None:
    with lib.Daemon(args=args) as daemon:
        got = lib.run(client(daemon.port, "-l", "1", "-t", test, "--beside", "TCP_RR"), PATIENCE)
    # If the probe has its turn first, the load says that it waits.
    lines = [line for line in got.err.splitlines() if "has not answered for" not in line]
    assert got.rc != 0 and len(lines) == 1 and "--beside" in lines[0], got


def the_real_netserver() -> str:
    with lib.Daemon(program=str(lib.real_netperf() / "netserver"), grace=None) as daemon:
        return beside_any_test(daemon.port, "TCP_RR", "-t", "TCP_STREAM")


def what_waits_behind_the_load(lab: lib.Lab, port: int) -> str:
    """Eight streams have several packets each in the queue: at 20 Mbit/s a packet takes 0.6 ms."""
    got = lib.run([*lab.client, *client(port, "-l", "3", "--warm-up", "1", "--flows", "8", "--beside", f"TCP_RR:{RATE}",
                                        host=LINKED)], PATIENCE)
    final = figures_of(got, "TCP_RR", 3 * RATE, 3 * RATE)
    told = {name: final[name] for name in ("LOAD_DIED", "LOADED_P50_LATENCY", "LOADED_RPM", "THROUGHPUT")}
    assert final["LOAD_DIED"] == "no" and final["LOADED_P50_LATENCY"] > 5000, told
    assert final["LOADED_RPM"] < 60e6 / 5000, told
    return f"{final['IDLE_P50_LATENCY']:.0f} us idle, {final['LOADED_P50_LATENCY']:.0f} us loaded"


def what_waits_within_the_load(lab: lib.Lab, port: int, test: str, option: str) -> str:
    """The clock runs until the last byte is acknowledged, which takes as long after its send as for those before it."""
    for _ in range(3):
        got = lib.run([*lab.client, *client(port, "-l", "2", "-t", test, "--beside", f"TCP_RR:{RATE}", "--", option, "256K",
                                            host=LINKED)], PATIENCE)
        final = figures_of(got, "TCP_RR", 2 * RATE, 2 * RATE)
        last = 1e6 * (final["ELAPSED_TIME"] - 2) if test == "TCP_STREAM" else final["LOAD_LATENCY"]
        rpm = 60e6 / ((60e6 / final["LOADED_RPM"] + final["LOAD_LATENCY"]) / 2)
        assert abs(final["RESPONSIVENESS"] / rpm - 1) < 0.01, final
        if 60000 < final["LOAD_LATENCY"] < 250000 and 0.7 < final["LOAD_LATENCY"] / last < 1.4:
            return f"{final['LOAD_LATENCY']:.0f} us, {last:.0f} behind the end"
    raise AssertionError(final)


def a_load_that_died_is_none(lab: lib.Lab, port: int) -> str:
    """The stream's large packets are dropped for a while; those of the probe are not."""
    with lib.Started([*lab.client, *client(port, "-l", "7", "--beside", f"TCP_RR:{RATE}", "--", "-s", "64K",
                                           host=LINKED)]) as run:
        time.sleep(5 + 1.5)  # 5 s of it alone
        lab.drop(lab.server, "meta length > 1000")
        time.sleep(2.5)
        lib.must([*lab.server, "nft", "delete table inet lab"])
        got = run.finish(PATIENCE)
    final = figures_of(got, "TCP_RR", 5 * RATE, 7 * RATE)
    assert "moved nothing for" in final["LOAD_DIED"] and final["LOADED_RPM"] is None, final
    assert "no latency under load" in got.err, got
    return str(final["LOAD_DIED"])


def a_late_probe_is_waited_for(lab: lib.Lab, port: int) -> str:
    """The first SYN of the probe's second data connection is lost; those of the load have a TOS of their own."""
    with lib.Filter(lab.server, "prerouting", f"tcp dport != {port} tcp flags & (syn | ack) == syn ip dscp 0 "
                    "numgen inc mod 2 == 1 counter drop") as late:
        got = lib.run([*lab.client, *client(port, "-l", "2", "-t", "TCP_MAERTS", "-Y", "cs1,cs1", "--beside", f"TCP_RR:{RATE}",
                                            host=LINKED)], PATIENCE)
        dropped = late.count() == 1
    final = lib.document(got.out)["final"]
    assert dropped and got.rc == 0 and final["ELAPSED_TIME"] > 1.9 and final["THROUGHPUT"] < 21, (dropped, got.err, final)
    return f"{final['THROUGHPUT']:.1f} Mbit/s over {final['ELAPSED_TIME']:.2f} s"


def over_a_link(report: lib.Report) -> None:
    with lib.Lab(f"beside{os.getpid() % 10000}", "--rate", "20mbit") as lab, lib.Daemon(lab.server) as daemon:
        report.case("what waits behind the load", partial(what_waits_behind_the_load, lab, daemon.port))
        for test, option in (("TCP_STREAM", "-s"), ("TCP_MAERTS", "-S")):
            report.case(f"what waits within the load: {test}", partial(what_waits_within_the_load, lab, daemon.port, test, option))
        report.each((a_late_probe_is_waited_for, a_load_that_died_is_none), lab, daemon.port)


def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon:
        for args, says in REFUSED:
            report.case(f"refused: {args}", partial(lib.refused, daemon.port, args, says))
        for probe, args in (("TCP_RR", "-t TCP_STREAM"), ("UDP_RR", "-t TCP_MAERTS --flows 2"),
                            ("TCP_CRR", "-t UDP_STREAM"), ("TCP_RR", "-t TCP_STREAM --both"),
                            ("TCP_RR", "-t STREAM_STREAM"), ("UDP_RR", "-t TCP_RR --warm-up 0.5")):
            report.case(f"{probe} beside {args}", partial(beside_any_test, daemon.port, probe, *args.split()))
        report.each((a_paced_load_pauses, iterations_are_one, it_says_so_below_a_table), daemon.port)
    for args in ("TCP_STREAM --max-sessions 1", "TCP_STREAM --exclusive 1", "TCP_MAERTS --exclusive"):
        report.case(f"a netserver of one session: {args}", partial(a_netserver_of_one_session, *args.split()))
    report.case("the real netserver", the_real_netserver)
    report.part("over a link", partial(over_a_link, report))


if __name__ == "__main__":
    lib.main(suite)
