"""Where threads run (-T with lists), and which processors receive packets: documents agree with the kernel, and what
is missing on this machine is reported. Needs root, for a link with several receive queues.
"""

import os
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, List, Set, Tuple

import lib

PATIENCE = 60
NOWHERE = 8190  # a processor that does not exist


def processors() -> List[int]:
    return sorted(os.sched_getaffinity(0))


def listed(cpus: List[int]) -> str:
    return f"{cpus[0]}-{cpus[1]}" if cpus[1] == cpus[0] + 1 else f"{cpus[0]}+{cpus[1]}"


def document_of(port: int, test: str, *args: str) -> Tuple[Any, str]:
    got = lib.run(lib.command(port, "-t", test, "-l", "0.4", "--json", *lib.PACED, *args), PATIENCE)
    assert got.rc == 0, got
    return lib.document(got.out), got.err


def threads_take_turns(port: int, cpus: List[int]) -> None:
    """The second processor is named first: the user's order counts."""
    text = f"{cpus[1]}+{cpus[0]}"
    document, err = document_of(port, "TCP_RR", "-T", text, "--flows", "6", "--threads", "3")
    workers, parameters = document["iterations"][0]["workers"], document["parameters"]
    wanted = [cpus[1], cpus[0], cpus[1]]
    assert [worker["bound"] for worker in workers] == wanted, workers
    assert [worker["cpu"] for worker in workers] == wanted, workers
    assert parameters["asked"]["near"]["cpus"] == parameters["asked"]["far"]["cpus"] == text, parameters
    assert parameters["granted"]["far"]["cpus"] == text and not err, (parameters, err)


def one_number_is_of_the_process(port: int, cpu: int) -> None:
    document, _ = document_of(port, "TCP_RR", "-T", f"{cpu},", "--flows", "2", "--threads", "2")
    assert [row["bound"] for row in document["iterations"][0]["workers"]] == [cpu] * 2, document["iterations"]
    asked = document["parameters"]["asked"]
    assert asked["near"]["cpu"] == cpu and asked["near"]["cpus"] is None, asked
    _, err = document_of(port, "TCP_RR", "-T", f"{NOWHERE},")
    assert err == f"netperf: -T: processor {NOWHERE} was refused at this end\n", err


def nobody_is_bound_unasked(port: int) -> None:
    document, _ = document_of(port, "TCP_RR", "--flows", "2", "--threads", "2")
    assert [row["bound"] for row in document["iterations"][0]["workers"]] == [None] * 2, document["iterations"]


def allowed(pid: int) -> List[Set[int]]:
    """The allowed processors of each thread of a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found.append(os.sched_getaffinity(int(task.name)))
        except ProcessLookupError:
            pass
    return found


def a_session_binds_its_threads(daemon: lib.Daemon, cpus: List[int]) -> None:
    """Only the workers are bound, to existing processors; the rest of the list is reported at both ends."""
    seen: List[Set[int]] = []

    def bound() -> bool:
        seen[:] = [one for pid in daemon.children() for one in allowed(pid)]
        return {min(one) for one in seen if len(one) == 1} == set(cpus)

    before = daemon.log()
    cmd = lib.command(daemon.port, "-l", "3", "--flows", "4", "--threads", "1,2", *lib.PACED, "-T",
                      f",{NOWHERE}+{listed(cpus)}")
    with lib.Started(cmd) as started:
        assert lib.wait_for(bound, 20), seen
        assert max(len(one) for one in seen) > 1, seen
        got = started.finish(PATIENCE)
    assert got.rc == 0, got
    lib.error_line(got, "netperf", "binds its threads to", listed(cpus), f"-T ,{NOWHERE}")
    new = [line for line in daemon.log()[len(before):].splitlines() if "bound" in line]
    assert len(new) == 1 and f"processor {NOWHERE}" in new[0], new


def sessions_take_turns(port: int, cpus: List[int]) -> None:
    """If a test has several sessions, each is bound to the next processor at both ends."""
    cmd = lib.command(port, "-l", "3", "--both", *lib.PACED, "-T", listed(cpus))
    seen: List[Set[int]] = []
    with lib.Started(cmd) as started:

        def bound() -> bool:
            seen[:] = allowed(started.pid)
            return {min(one) for one in seen if len(one) == 1} == set(cpus)

        assert lib.wait_for(bound, 20), seen
        got = started.finish(PATIENCE)
    assert got.rc == 0, got


def answers_come_in_where_they_were_sent(port: int, here: int, there: int) -> str:
    """On loopback, the sending processor receives the packet, without a receive queue."""
    document, _ = document_of(port, "TCP_RR", "-T", f"{here},{there}", "--flows", "4")
    rows = document["iterations"][0]["flows"]
    assert [row["napi_id"] for row in rows] == [None] * 4, rows
    assert [row["incoming_cpu"] for row in rows] == [there] * 4, rows
    return f"processor {there}"


def nothing_to_spread_over(port: int) -> None:
    """Loopback has no receive queues: a line reports that, and the test continues."""
    document, err = document_of(port, "TCP_RR", "--spread", "--flows", "4")
    one = document["iterations"][0]
    assert "queues of the data connections are not known" in err and len(err.splitlines()) == 1, err
    assert one["spread"]["queues"] is one["spread"]["collisions"] is None and one["spread"]["reconnected"] == 0, one
    assert all(row["transactions"] > 0 for row in one["flows"]), one["flows"]


class Wire(lib.Net):
    """A veth pair between two namespaces, with numbered receive queues."""

    queues, far = 4, "10.99.7.2"
    names = [f"place{os.getpid()}{end}" for end in "ab"]
    client, server = (["ip", "netns", "exec", name] for name in names)

    def make(self) -> None:
        near, far = self.names
        many = f"numrxqueues {self.queues} numtxqueues {self.queues}"
        lib.ip(f"link add v netns {near} {many} type veth peer name v netns {far} {many}")
        for name, address in ((near, "10.99.7.1"), (far, self.far)):
            lib.ip(f"-n {name} address add {address}/24 dev v", f"-n {name} link set v up")
            # NAPI is used if one end has GRO and the other has no TSO.
            lib.must(["ip", "netns", "exec", name, "ethtool", "-K", "v", "tso", "off", "gro", "on"])


def flows_lie_apart(wire: Wire, port: int, test: str, flows: int, *args: str) -> str:
    cmd = lib.command(port, "-t", test, "-l", "1", "--json", "--flows", str(flows), *args, host=wire.far,
                      prefix=wire.client)
    got = lib.run([*cmd, "--spread"], PATIENCE)
    assert got.rc == 0, got
    one = lib.document(got.out)["iterations"][0]
    on = Counter(row["napi_id"] for row in one["flows"])
    if None in on:
        assert "--spread: the receive queues of the data connections are not known" in got.err, got.err
        return "this kernel tells no queues of a veth"
    spread, share = one["spread"], -(-flows // wire.queues)
    lib.error_line(got, "netperf", "--spread", f"{flows} flows on {len(on)} receive queues")
    assert spread["queues"] == len(on) and spread["of"] == wire.queues, (spread, on)
    assert spread["collisions"] == sum(max(0, n - share) for n in on.values()), (spread, on)
    assert spread["collisions"] == 0, f"64 rounds did not do: {spread}, {on}"
    assert all(row["bytes_sent"] > 0 for row in one["flows"]), one["flows"]
    return f"{spread['reconnected']} made again"


def over_a_wire(report: lib.Report) -> None:
    if report.lacks("flows lie apart", lib.no_lab() or ("" if shutil.which("ethtool") else "no program ethtool")):
        return
    with Wire() as wire, lib.Daemon(prefix=wire.server) as daemon:
        for test, flows, args in (("TCP_RR", 4, ()), ("TCP_RR", 64, ("--threads", "2")), ("TCP_STREAM", 8, ()),
                                  ("TCP_STREAM", 4, ("--threads", "4"))):
            report.case(f"flows lie apart: {flows} of {test} {' '.join(args)}",
                        partial(flows_lie_apart, wire, daemon.port, test, flows, *args))


def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon:
        cpus = processors()[:2]
        if len(cpus) < 2:
            report.skip("lists", "there is one processor")
            return
        report.case("a session binds its threads", partial(a_session_binds_its_threads, daemon, cpus))
        report.case("sessions take turns", partial(sessions_take_turns, daemon.port, cpus))
        if report.lacks("documents", lib.no_documents()):
            return
        report.case("nothing to spread over", partial(nothing_to_spread_over, daemon.port))
        over_a_wire(report)
        report.case("threads take turns", partial(threads_take_turns, daemon.port, cpus))
        report.case("one number is of the process", partial(one_number_is_of_the_process, daemon.port, cpus[0]))
        report.case("nobody is bound unasked", partial(nobody_is_bound_unasked, daemon.port))
        for here, there in ((cpus[0], cpus[1]), (cpus[1], cpus[0])):
            report.case(f"answers come in where they were sent: {there}",
                        partial(answers_come_in_where_they_were_sent, daemon.port, here, there))


if __name__ == "__main__":
    lib.main(suite)
