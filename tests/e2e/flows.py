"""Several data connections (--flows) and what drives them (--engine): what excludes them is refused in one
line, the list says what this end can do, and what each flow carried adds up to the result.
"""

import json
from functools import partial
from typing import Any, Dict, List

import lib

HOST = "127.0.0.1"
FLOWS = 10
PATIENCE = 60

# Options, and what the line about them says.
REFUSED = (
    ("--flows 0", ("--flows", "1 to 10000")),
    ("--flows 10001", ("--flows", "1 to 10000")),
    ("--flows many", ("--flows", "not a number")),
    ("--flows 2 -t TCP_CRR", ("--flows", "TCP_CRR", "TCP_RR")),
    ("--flows 2 -t UDP_STREAM -- -m 100", ("--flows", "UDP_STREAM")),
    ("--flows 2 -t STREAM_RR", ("--flows", "STREAM_RR")),
    ("--flows 2 -N", ("--flows", "-N")),
    ("--flows 2 -t UDP_RR -- -N", ("--flows", "-N")),
    ("--flows 2 -- -P 5000", ("--flows", "port 5000")),
    ("--flows 2 --engine sync", ("--engine sync", "--flows 2", "one connection")),
    ("--flows 2 --engine epoll,sync", ("--engine ,sync", "--flows 2", "one connection")),
    ("--engine steam", ("--engine", "steam", "--engine list")),
    ("--engine sync,steam", ("--engine", "steam")),
)
TESTS = ("TCP_STREAM", "TCP_MAERTS", "TCP_RR", "UDP_RR")


def refused(port: int, args: str, says: List[str]) -> None:
    got = lib.run([lib.netperf(), "-H", HOST, "-p", str(port), *args.split()], timeout=20)
    assert got.rc == 1 and not got.out, got
    lib.error_line(got, "netperf", *says)


def engines(*args: str) -> Dict[str, str]:
    """What the list says of each engine."""
    got = lib.run([lib.netperf(), *args, "--engine", "list"], timeout=20)
    assert got.rc == 0 and not got.err, got
    title, *rows = got.out.splitlines()
    assert title.startswith("engines at this end, for "), title
    return {name: text for name, text in (row.split(None, 1) for row in rows)}


def the_list_says_why_not() -> None:
    one, many = engines("-t", "TCP_RR"), engines("-t", "TCP_RR", "--flows", "100")
    assert list(one) == list(many) and {"sync", "epoll"} <= set(one), one
    assert "not here" not in one["sync"] and "not here: " in many["sync"], (one, many)


def document_of(port: int, test: str, *args: str) -> Any:
    got = lib.run([lib.netperf(), "-H", HOST, "-p", str(port), "-t", test, "-l", "1", "--json", *args],
                  timeout=PATIENCE)
    assert got.rc == 0, got
    return json.loads(got.out)


def the_usual_engine_may_be_named(port: int) -> None:
    plan = document_of(port, "TCP_RR", "--engine", "sync,")["plan"]
    assert plan == {"flows": 1, "engine": {"near": "sync", "far": None}}, plan


def the_far_end_tells_its_engine(port: int) -> None:
    document = document_of(port, "TCP_RR", "--engine", "epoll")
    engine = {"near": "epoll", "far": "epoll"}
    assert document["plan"] == {"flows": 1, "engine": engine}, document["plan"]
    assert document["final"]["REMOTE_ENGINE"] == "epoll", document["final"]["REMOTE_ENGINE"]


def flows_add_up(port: int, test: str) -> str:
    document = document_of(port, test, "--flows", str(FLOWS))
    final, rows = document["final"], document["iterations"][0]["flows"]
    assert document["plan"]["flows"] == final["FLOWS"] == len(rows) == FLOWS, document["plan"]
    for row, figure in (("bytes_sent", "LOCAL_BYTES_SENT"), ("bytes_received", "LOCAL_BYTES_RECVD")):
        assert sum(one[row] for one in rows) == final[figure], (row, rows, final[figure])
    if test.endswith("RR"):
        rate = sum(one["transactions_per_s"] for one in rows)
        assert abs(rate / final["TRANSACTION_RATE"] - 1) < 1e-6, (rate, final["TRANSACTION_RATE"])
        assert all(one["transactions"] > 0 for one in rows), rows
    else:
        assert all(one["bits_per_s"] > 0 for one in rows), rows
    return f"{final['THROUGHPUT']:.0f} {final['THROUGHPUT_UNITS']}"


def each_has_its_turn(port: int) -> str:
    """Bursts that are too small for all flows at once."""
    document = document_of(port, "TCP_STREAM", "--flows", "6", "-b", "4", "-w", "10")
    sent = [row["bytes_sent"] for row in document["iterations"][0]["flows"]]
    assert min(sent) > 0 and min(sent) * 3 > max(sent), sent
    return " ".join(str(one) for one in sent)


def a_pause_ends_with_the_test(port: int) -> None:
    """A receiver sleeps until its next burst is due, but not beyond the end."""
    got = lib.run([lib.netperf(), "-H", HOST, "-p", str(port), "-t", "TCP_MAERTS", "--flows", "2", "-b", "1", "-w",
                   "60000", "-l", "1"], timeout=PATIENCE / 2)
    assert got.rc == 0, got


def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon:
        for args, says in REFUSED:
            report.case(f"refused: {args}", partial(refused, daemon.port, args, list(says)))
        report.case("a pause ends with the test", partial(a_pause_ends_with_the_test, daemon.port))
        report.case("the list says why not", the_list_says_why_not)
        if "libjansson" in lib.run([lib.netperf(), "--show", "/nowhere"], timeout=20).err:
            report.skip("documents", "made without libjansson")
            return
        report.case("the usual engine may be named", partial(the_usual_engine_may_be_named, daemon.port))
        report.case("the far end tells its engine", partial(the_far_end_tells_its_engine, daemon.port))
        report.case("each has its turn", partial(each_has_its_turn, daemon.port))
        for test in TESTS:
            why = engines("-t", test, "--flows", str(FLOWS))["epoll"].partition("not here: ")[2]
            if why:
                report.skip(f"flows add up: {test}", f"epoll: {why}")
            else:
                report.case(f"flows add up: {test}", partial(flows_add_up, daemon.port, test))


if __name__ == "__main__":
    lib.main(suite)
