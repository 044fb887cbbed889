"""Several data connections (--flows) and engines (--engine): invalid combinations are refused in one line, the list
says what this end supports, the flows add up to the result, and a thousand of them cost the client little memory.
kills.py tests crashes of either program, the laws (tests/laws) test counts.
"""

import os
import re
import resource
import signal
import time
from functools import partial
from pathlib import Path
from typing import Dict, Sequence

import lib

FLOWS = 10
PATIENCE = 60

# Options, and the error line about them.
REFUSED = (
    ("--flows many", ("--flows", "not a number")),
    ("--flows 11 -t TCP_CRR -- -p 6000,6010", ("--flows", "11 connections", "6000,6010")),
    ("--flows 7 -t UDP_RR -- -P ,65530", ("--flows", "port 65530")),
    ("--flows 2 --threads 3", ("--threads 3", "2 data connections", "--flows")),
    ("--flows 2 --threads 2,3", ("--threads ,3", "2 data connections", "--flows")),
    ("--threads 0", ("--threads", "1 to 256")),
    ("--threads 2,x", ("--threads", "x is not a number")),
    ("--warm-up -1", ("--warm-up", "-1")),
    ("--warm-up 61m", ("--warm-up", "61m", "1h", "1m30s")),
    ("--warm-up 1k", ("--warm-up", "1k", "1h", "1m30s")),
    ("--warm-up 1 -l -100000", ("--warm-up", "ends by a count", "-l S")),
    ("--flows 2 -t UUID", ("--flows", "UUID")),
    ("--threads 2 -t LOC_CPU", ("--threads", "LOC_CPU")),
)
COUNTED = ("DG_STREAM -- -m 1000", "UDP_STREAM -- -m 100")
CROWD, COUNT = 100, 1000000    # flows of datagrams; bytes that fit into all queues
MANY = 2000                    # flows; the daemon's default limits grant fewer
SLOW = ("-b", "1", "-w", "5s")      # so that many flows make little load
THOUSAND = 1000
MOST_MEMORY = 16 << 20         # bytes that THOUSAND connections may cost the client in addition to one


def engines(*args: str) -> Dict[str, str]:
    """What the list says about each engine."""
    got = lib.run([lib.netperf(), *args, "--engine", "list"], timeout=20)
    assert got.rc == 0 and not got.err, got
    title, *rows, last = got.out.splitlines()
    assert title.startswith("engines at this end, for ") and last.startswith("only this end is shown: "), got.out
    return {name: text for name, text in (row.split(None, 1) for row in rows)}


def the_list_says_why_not() -> None:
    one, many = engines("-t", "TCP_RR"), engines("-t", "TCP_RR", "--flows", "100")
    assert list(one) == list(many) and {"sync", "epoll"} <= set(one), one
    assert "not here" not in one["sync"] and "not here: " in many["sync"], (one, many)


def the_usual_engine_may_be_named(port: int) -> None:
    plan = lib.document_of(port, "TCP_RR", "--engine", "sync,", "-l", "-100")["plan"]
    assert plan["flows"] == 1 and plan["engine"] == {"near": "sync"}, plan
    assert plan["threads"] == {"near": 1}, plan


def the_far_end_tells_its_engine(port: int) -> None:
    document = lib.document_of(port, "TCP_RR", "--engine", "epoll", "-l", "-100")
    engine = {"near": "epoll", "far": "epoll"}
    assert document["plan"]["engine"] == engine, document["plan"]
    assert document["plan"]["threads"] == {"near": 1, "far": 1}, document["plan"]
    assert document["final"]["REMOTE_ENGINE"] == "epoll", document["final"]["REMOTE_ENGINE"]


def interim_results_have_each_flow(port: int, test: str) -> str:
    """A flow's interim results add up to its total; for many flows, quartiles are reported."""
    document = lib.document_of(port, test, "--flows", "3", "-D", "0.3", "-f", "x", *lib.PACED)
    interim, rows = document["interim"], document["iterations"][0]["flows"]
    for number, row in enumerate(rows):
        did = row["transactions"] or (row["bytes_sent"] + row["bytes_received"]) * 8 / 1e6
        told = sum(one["flows"][number] * one["seconds"] for one in interim)
        assert did > 0 and abs(told - did) <= 1.5, (number, told, did)    # one may have been in progress at the end
    for one in interim:
        rates = sorted(one["flows"])
        assert one["flow_quartiles"] == [rates[0], rates[0], rates[1], rates[1], rates[2]], one
        squares = sum(rate ** 2 for rate in rates)
        assert not squares or abs(one["jain_index"] - sum(rates) ** 2 / 3 / squares) < 1e-9, one
    many = lib.document_of(port, test, "--flows", "65", "-D", "0.5", *lib.PACED)["interim"][-1]
    assert many["flows"] == [] and many["flow_quartiles"] == sorted(many["flow_quartiles"]), many
    alone = lib.document_of(port, test, "-D", "0.5", *lib.PACED)["interim"][-1]
    assert "flows" not in alone, alone
    return f"{len(interim)} results"


def descriptors_must_do(port: int) -> None:
    """The soft limit is raised up to the hard limit; if that is too low for all flows, the test does not start."""
    client = lib.command(port, "-t", "TCP_CRR", "-l", "1", "--flows", "100")
    got = lib.run(["sh", "-c", 'ulimit -S -n 40; exec "$@"', "sh", *client], timeout=20)
    assert got.rc == 0, got
    got = lib.run(["sh", "-c", 'ulimit -n 100; exec "$@"', "sh", *client], timeout=20)
    assert got.rc == 1, got
    lib.error_line(got, "netperf", "--flows", "ulimit -n")


def the_real_netserver(test: str) -> None:
    """It has one connection per session, and no engines."""
    with lib.Daemon(program=str(lib.real_netperf() / "netserver"), grace=None) as daemon:
        got = lib.run(lib.command(daemon.port, "-t", test, "-l", "1", "--flows", "2", "--engine", ",epoll"), 20)
    assert got.rc not in (0, None), got
    lib.error_line(got, "netperf", "--engine: the netserver", "does not support this")


def threads_add_up(port: int, test: str, threads: str, engine: str, *args: str) -> str:
    """Each worker has a share of the flows, and all have the same window."""
    document = lib.document_of(port, test, "--flows", "6", "--threads", threads, *args, length="0.4")
    one, near = document["iterations"][0], int(threads.split(",")[0])
    workers, rows = one["workers"], one["flows"]
    assert document["plan"]["engine"]["near"] == engine, document["plan"]
    assert document["final"]["THREADS"] == len(workers) == near, workers
    for i, worker in enumerate(workers):
        mine = [row for row in rows if row["worker"] == i]
        assert worker["flows"] == len(mine) == 6 // near, (worker, mine)
        for name in ("bytes_sent", "bytes_received"):
            assert worker[name] == sum(row[name] for row in mine), (name, worker, mine)
        assert 0 <= worker["began_us"] < worker["ended_us"], worker
        assert worker["user_s"] + worker["system_s"] > 0, worker
    assert document["final"]["LOCAL_BYTES_SENT"] == sum(worker["bytes_sent"] for worker in workers), document["final"]
    assert 0 <= document["final"]["MIN_FLOW_THROUGHPUT"] <= document["final"]["MAX_FLOW_THROUGHPUT"]
    begins = [worker["began_us"] for worker in workers]
    assert abs(one["skew"]["near"]["begin_us"] - (max(begins) - min(begins))) < 0.01, one["skew"]
    assert one["skew"]["far"]["begin_us"] is not None, one["skew"]
    return f"skew {one['skew']['near']['begin_us']:.0f} us"


def counted(port: int, test: str, *args: str, own: "Sequence[str]" = ()) -> None:
    """Exactly as many requests as requested, with any number of flows and threads."""
    out = lib.must(lib.command(port, "-t", test, "-l", "-1003", "-P", "0", *args, "--", *own,
                               "-k", "LOCAL_SEND_CALLS,LOCAL_RECV_CALLS,REMOTE_RECV_CALLS,REMOTE_SEND_CALLS"),
                   timeout=PATIENCE)
    assert {line.split("=")[1] for line in out.split()} == {"1003"}, out


def a_later_window_has_a_receiver(port: int, test: str) -> None:
    """A client delayed in its warm-up opens its window later than the far end, and closes it later. On a busy machine
    it must close before the far end's time is up."""
    with lib.Started(lib.command(port, "-t", test, "-l", "3", "-P", "0", "--warm-up", "1", *lib.PACED)) as client:
        assert client.measuring(), client.said()
        client.signal(signal.SIGSTOP)
        time.sleep(1.5)
        client.signal(signal.SIGCONT)
        got = client.finish(PATIENCE)
    assert got.rc == 0 and not lib.complaints(got), got


def who_stood_still_says_so(port: int) -> str:
    with lib.Started(lib.command(port, "-t", "TCP_RR", "-l", "2", "-P", "0")) as client:
        assert client.measuring(), client.said()
        client.signal(signal.SIGSTOP)
        time.sleep(8)
        client.signal(signal.SIGCONT)
        got = client.finish(PATIENCE)
    assert got.rc == 1 and got.out, got
    return lib.error_line(got, "netperf", "stood still", "too late", "partial: it")


def a_warm_up_takes_none_of_the_count(port: int, test: str) -> None:
    """What was in flight at its end is not counted in addition, while the last interval of a load lasts."""
    for count, words in (1003, ("--threads", "2")), (2, ("-b", "1", "-w", "10ms")):
        got = lib.run(lib.command(port, "-t", test, "-l", f"-{count}", "-P", "0", "--warm-up", "3e-1", "--flows", "7",
                                  *words, "--", "-k", "LOCAL_RECV_CALLS"), timeout=PATIENCE)
        assert got.rc == 0 and got.out.strip() == f"LOCAL_RECV_CALLS={count}", got


def interrupted_in_its_warm_up(port: int, test: str) -> None:
    """An interrupt in the warm-up gives no result."""
    got = lib.interrupted(lib.command(port, "-t", test, "-l", "5", "-P", "0", "--warm-up", "60", "--flows", "4",
                                      "--threads", "2"), timeout=20)
    assert got.rc not in (0, None) and not got.out, got
    lib.error_line(got, "netperf", "interrupted", "60 s", "--warm-up")


def all_arrives(port: int, test: str, threads: str) -> str:
    """The end of one flow does not end others."""
    document = lib.document_of(port, test, "--flows", str(CROWD), "--threads", threads, length=f"-{COUNT}")
    final, rows = document["final"], document["iterations"][0]["flows"]
    assert final["LOCAL_BYTES_SENT"] == final["REMOTE_BYTES_RECVD"] >= COUNT, final
    assert final["FLOWS"] == len(rows) == CROWD and min(row["bytes_sent"] for row in rows) > 0, final
    return f"{final['REMOTE_BYTES_RECVD']} bytes"


def each_answers(port: int, test: str, *args: str, flows: int = FLOWS) -> None:
    """Each flow of datagrams is served by a socket of its own."""
    document = lib.document_of(port, test, "--flows", str(flows), "-b", "1", "-w", "100ms", *args)
    rows = document["iterations"][0]["flows"]
    assert document["final"]["LOST_REQUESTS"] == 0 and len(rows) == flows, document["final"]
    assert min(row["transactions"] for row in rows) > 0, document["final"]


def many_receive(port: int) -> None:
    """More flows than fit into one message: one session sends to all ports. On a busy machine, all datagrams of a
    flow may be lost."""
    document = lib.document_of(port, "OMNI -- -d recv -T udp -m 100", "--flows", str(CROWD), *lib.PACED)
    rows = document["iterations"][0]["flows"]
    assert len(rows) == CROWD and sum(row["bytes_received"] > 0 for row in rows) > CROWD / 2, document["final"]


def as_many_as_granted(port: int) -> str:
    got = lib.run(lib.command(port, "-t", "UDP_RR", "-l", "1", "-P", "0", "--flows", str(MANY), *SLOW, "--", "-k",
                              "FLOWS,LOST_REQUESTS"), timeout=PATIENCE)
    line = lib.error_line(got, "netperf", f"grants 1024 of {MANY} data connections")
    assert got.rc == 0 and got.out.split() == ["FLOWS=1024", "LOST_REQUESTS=0"], got
    return line


def each_flow_has_its_numbers(port: int) -> str:
    far = lib.document_of(port, "UDP_STREAM -- -m 1000", "--flows", "3", "--threads", "2", length="-20000")["iterations"][0]["far"]
    assert far["udp.flows"] == 3 and far["udp.sent"] == far["udp.unique"] + far["udp.lost"] >= 20, far
    assert far["udp.duplicated"] == far["udp.foreign"] == 0, far
    return f"{far['udp.unique']} of {far['udp.sent']}"


def each_has_its_turn(port: int) -> str:
    """Flows of a thread take turns in bursts."""
    document = lib.document_of(port, "UDP_STREAM -- -m 1000", "--flows", "6", "-b", "2", "-w", "10")
    sent = [row["bytes_sent"] for row in document["iterations"][0]["flows"]]
    assert 0 < max(sent) <= min(sent) + 2 * 1000, sent
    return " ".join(str(one) for one in sent)


def each_has_a_pace(port: int, threads: int, engine: str = ",") -> None:
    """Each flow has netperf's pace for one connection, however many threads there are. At the far end, the first flow
    that has to wait makes the others of its thread wait, too."""
    for burst, wait, least in (("2", "60000", 4 * 2), (",2", ",60000", 4 + 1)):
        document = lib.document_of(port, "TCP_RR", "--flows", "4", "--threads", str(threads), "--engine", engine, "-b", burst, "-w", wait)
        assert least <= document["iterations"][0]["near"]["flow.transactions"] <= 4 * 2, (burst, document["iterations"][0]["flows"])


def a_pause_ends_with_the_test(port: int) -> None:
    """A receiver sleeps until its next burst, but not beyond the end."""
    lib.must(lib.command(port, "-t", "TCP_MAERTS", "--flows", "2", "-b", "1", "-w", "60000", "-l", "1"),
             timeout=PATIENCE / 2)


def people_see_the_flows(port: int) -> str:
    got = lib.run(lib.command(port, "-l", "-1000000", "--human", "--cycles", "--flows", "3", "--threads", "2,1"),
                  timeout=PATIENCE)
    row = re.search(r"^Flows +3, least .*bit/s, most .*bit/s,\s+Jain's\s+index\s+[01]\.\d+,\s+threads\s+2\s+local,"
                    r"\s+1\s+remote$", got.out, re.M)
    assert got.rc == 0 and row, got
    assert re.fullmatch(r"cycles: (not counted: .+|[\d.e+]+, and [\d.e+]+ instructions .+ cycles a byte)\n", got.err), got
    return got.err


# ---- a thousand of them, from outside -----------------------------------------------------------

def sockets(pid: int) -> int:
    """The number of a process's sockets, in the descriptor table of the thread with the most; 0 if it has ended."""
    most = 0
    for table in Path(f"/proc/{pid}/task").glob("*/fd"):
        try:
            most = max(most, sum(os.readlink(fd).startswith("socket:") for fd in table.iterdir()))
        except OSError:
            continue  # a descriptor or thread that is gone
    return most


def peak(pid: int) -> int:
    """Peak memory of a process in bytes; 0 if it has ended."""
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.M)
    except OSError:
        return 0
    return int(found[1]) << 10 if found else 0


def watched(started: lib.Started, flows: int) -> int:
    """Watch a client until it ends, and return its peak memory. Checks that it had a socket per flow, and one for the
    control connection."""
    memory_of_it = open_at_once = 0
    while started.running():
        memory_of_it = max(memory_of_it, peak(started.pid))
        open_at_once = max(open_at_once, sockets(started.pid))
        time.sleep(0.02)
    assert open_at_once > flows, f"--flows {flows}: {open_at_once} sockets: {started.said()}"
    assert memory_of_it, f"--flows {flows}: never seen"
    return memory_of_it


def peak_with(port: int, flows: int) -> int:
    """Peak memory of a client with that many flows."""
    with lib.Started(lib.command(port, "-t", "TCP_RR", "-l", "3", "--flows", str(flows), "--engine", "epoll",
                                 *SLOW)) as started:
        seen = watched(started, flows)
        got = started.finish(60)
    assert got.rc == 0 and not got.err, f"--flows {flows}: {got.rc}: {got.err!r}"
    return seen


def memory(port: int) -> str:
    """Rings, histogram and thread exist once per worker; the rest grows with the connections."""
    if lib.QUICK:
        raise lib.Skipped("sanitizers have memory of their own")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < THOUSAND + 100:
        raise lib.Skipped(f"no more than {hard} descriptors")
    cost = peak_with(port, THOUSAND) - peak_with(port, 1)
    assert cost < MOST_MEMORY, f"{THOUSAND} connections cost {cost / (1 << 20):.1f} MiB"
    return f"{cost / (1 << 20):.1f} MiB"


def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon:
        for args, says in REFUSED:
            report.case(f"refused: {args}", partial(lib.refused, daemon.port, args, says))
        report.case("a pause ends with the test", partial(a_pause_ends_with_the_test, daemon.port))
        report.case("the list says why not", the_list_says_why_not)
        report.case("descriptors must do", partial(descriptors_must_do, daemon.port))
        report.case(f"memory of {THOUSAND} connections", partial(memory, daemon.port))
        for test in ("TCP_STREAM", "TCP_RR"):
            report.case(f"the real netserver: {test}", partial(the_real_netserver, test))
        report.case("people see the flows", partial(people_see_the_flows, daemon.port))
        if report.lacks("documents", lib.no_documents()):
            return
        report.each((the_usual_engine_may_be_named, the_far_end_tells_its_engine, each_has_its_turn), daemon.port)
        for threads in (1, 2, 4):
            report.case(f"each has a pace, {threads} threads", partial(each_has_a_pace, daemon.port, threads))
        report.cases([(f"interim results have each flow: {test}",
                       partial(interim_results_have_each_flow, daemon.port, test))
                      for test in ("TCP_STREAM", "TCP_MAERTS", "TCP_RR", "UDP_RR", "TCP_CRR")], 5)
        for test, threads, engine in (("TCP_STREAM", "3,1", "epoll"), ("UDP_RR", "6,2", "sync"),
                                      ("TCP_CRR", "2,3", "epoll")):
            report.case(f"threads add up: {test} {threads}",
                        partial(threads_add_up, daemon.port, test, threads, engine))
        report.cases([(f"threads add up: {test} {threads}",
                       partial(threads_add_up, daemon.port, test, threads, engine, *lib.PACED))
                      for test, threads, engine in (("TCP_RR", "2", "epoll"), ("TCP_RR", "6", "sync"),
                                                    ("TCP_STREAM", "6", "sync"), ("TCP_CRR", "6", "sync"))], 4)
        report.case("counted: UDP_RR -B", partial(counted, daemon.port, "UDP_RR", "--flows", "4", "--threads", "4,4", own=("-B",)))
        report.cases([(f"a later window has a receiver: {test}", partial(a_later_window_has_a_receiver, daemon.port, test))
                      for test in ("TCP_STREAM", "UDP_STREAM", "DG_STREAM")], 3)
        report.case("who stood still says so", partial(who_stood_still_says_so, daemon.port))
        for test in ("TCP_RR", "TCP_CRR"):
            report.case(f"a warm-up takes none of the count: {test}",
                        partial(a_warm_up_takes_none_of_the_count, daemon.port, test))
        for test in ("TCP_RR", "TCP_STREAM", "TCP_MAERTS", "TCP_CRR", "UDP_RR"):
            report.case(f"interrupted in its warm-up: {test}",
                        partial(interrupted_in_its_warm_up, daemon.port, test))
        lite = "UDP-Lite" in Path("/proc/net/protocols").read_text()
        report.case("interim results have each flow: UDPLite", partial(
            interim_results_have_each_flow, daemon.port, "OMNI -- -d send -T udplite"),
            unless="" if lite else "not in this kernel")
        for test in COUNTED:
            for threads in ("1", "4"):
                report.case(f"all arrives: {test} --threads {threads}", partial(all_arrives, daemon.port, test, threads))
        for test in ("UDP_RR", "DG_RR"):
            report.case(f"each answers: {test} --threads 3,2",
                        partial(each_answers, daemon.port, test, "--threads", "3,2", flows=CROWD))
        report.case("ports in a row", lambda: each_answers(daemon.port, f"UDP_RR -- -P ,{lib.free_port()}"))
        report.case("connected at both ends", partial(each_answers, daemon.port, "UDP_RR -- -N"))
        report.each((many_receive, as_many_as_granted, each_flow_has_its_numbers), daemon.port)


if __name__ == "__main__":
    lib.main(suite)
