# netvm: modules tipc
"""TIPC: the counts of both ends, and a client that names another node."""


import lib


def netperf(daemon: lib.Daemon, *words: str) -> lib.Result:
    return lib.run(lib.command(daemon.port, "--json", *words), timeout=60)


def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon:
        for words in (["TIPC_STREAM", "-l", "1"], ["TIPC_RR", "-l", "-50"], ["TIPC_STREAM", "--flows", "3", "-l", "1"]):
            got = netperf(daemon, "-t", *words, "--", "-H", "0")
            final = lib.document(got.out)["final"] if got.rc == 0 else {}
            agree = bool(final) and final["LOCAL_BYTES_SENT"] == final["REMOTE_BYTES_RECVD"] > 0
            report.check(" ".join(words), agree, got.err)
        got = netperf(daemon, "-t", "TIPC_RR", "-l", "2", "--", "-H", "0", "-L", "1001002")
        report.check("only the node that the client names is admitted", got.rc != 0, got.err)
        for node in ("-1", "0x1", "100000000", "node"):
            got = netperf(daemon, "-t", "TIPC_RR", "-l", "2", "--", "-H", node)
            report.check(f"{node} is no node", got.rc != 0 and "is no TIPC node" in got.err, got.err)


lib.main(suite)
