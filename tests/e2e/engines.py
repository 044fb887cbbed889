"""The engines (--engine) with real sockets, one row of CASES each: both ends count the same, and the evidence proves
that the engine was used. Tests that an engine can't run are refused in one line.
"""

from functools import partial
from typing import Any, Callable, Dict, NamedTuple, Tuple

import lib

HOST = "127.0.0.1"
PATIENCE = 60
AT_ONCE = 4

Bag = Dict[str, Any]


class Case(NamedTuple):
    """A counted test that is so small that no socket buffer overflows."""
    engine: str             # of --engine
    test: str               # and its test-specific options
    args: str = ""          # netperf's
    host: str = HOST


STREAM, RR = "UDP_STREAM -- -m 500", "UDP_RR -- -r 64,32"
BURSTS = f"{RR} -b 20"


def datagrams(engine: str) -> "Tuple[Case, ...]":
    """Cases for an engine that carries several datagrams per call."""
    return (
        Case(engine, STREAM), Case(f"{engine},", STREAM), Case(f",{engine}", STREAM),
        Case(f"{engine},epoll", STREAM), Case(f"epoll,{engine}", BURSTS),
        Case(engine, RR), Case(engine, BURSTS), Case(f"{engine},", BURSTS), Case(f",{engine}", BURSTS),
        Case(engine, STREAM, host="::1"), Case(engine, BURSTS, host="::1"),
        Case(engine, f"{STREAM} -n"), Case(engine, f"{STREAM} -N"),
        Case(engine, STREAM, "-b 20 -w 2"), Case(engine, BURSTS, "-b 20 -w 2"),
        Case(engine, STREAM, "-k 50,50"), Case(engine, STREAM, "--batch 7"), Case(engine, BURSTS, "--batch 7"),
        Case(engine, STREAM, "--flows 5 --threads 2"), Case(engine, BURSTS, "--flows 6 --threads 2,3"),
        Case(engine, STREAM, "--flows 3 --threads 3"), Case(engine, RR, "--flows 100"),
        Case(engine, RR, "--warm-up 0.2"), Case(engine, BURSTS, "--warm-up 0.2 --flows 4"),
        Case(engine, "UDP_RR -- -r 1000,60"),
    )


CASES = (
    *datagrams("batch"), Case("batch", "DG_STREAM -- -m 500"), Case("batch", "DG_RR -- -r 64,32"),
    Case("batch", "DG_STREAM -- -m 500", "--flows 4"),
    *datagrams("segment"), Case("segment", "UDP_STREAM -- -m 1000", "--segment-size 100"),
    Case("segment", "UDP_STREAM", "--segment-size 100"), Case("segment,batch", STREAM), Case("batch,segment", BURSTS),
    Case("segment", "UDP_RR -- -r 60,1000 -b 30"),
)

# Options, and the error line about them.
REFUSED = (
    ("--engine batch -t TCP_STREAM", ("--engine batch", "TCP_STREAM", "datagrams")),
    ("--engine segment -t TCP_RR", ("--engine segment", "TCP_RR", "datagrams")),
    ("--engine segment -t DG_STREAM", ("--engine segment", "DG_STREAM", "UDP")),
    ("--engine batch -t UDP_STREAM -j", ("--engine batch", "not of each message")),
    ("--engine segment -t UDP_RR -- -B", ("--engine segment", "-B")),
    ("--batch 0 --engine batch -t UDP_RR", ("--batch", "1 to 1024")),
    ("--batch 8 -t UDP_STREAM", ("--batch", "--engine batch")),
    ("--batch 8 --engine zerocopy -t UDP_STREAM", ("--batch", "--engine batch")),
    ("--batch 8 -t LOC_CPU", ("--batch", "LOC_CPU", "no data connection")),
    ("--engine spin -t LOC_CPU", ("--engine", "LOC_CPU", "no data connection")),
    ("--segment-size 100 -t UDP_STREAM", ("--segment-size", "--engine segment")),
    ("--segment-size 0 --engine segment -t UDP_STREAM", ("--segment-size", "1 to 65507")),
    ("--segment-size 100 --engine segment -t UDP_RR", ("--segment-size", "UDP_RR", "-r")),
    ("--segment-size 100 --engine segment -t UDP_STREAM -- -m 99", ("--segment-size 100", "99 bytes", "-m")),
    ("--segment-size 100 --engine segment -t UDP_STREAM -- -m 6500", ("6500 bytes", "64 datagrams", "-m 6400")),
    ("--segment-size 9 --engine segment --batch 5 -t UDP_STREAM -- -m 99", ("99 bytes", "5 datagrams", "-m 45")),
)


def name_of(case: Case) -> str:
    return " ".join(part for part in (case.engine, case.test, case.args, case.host) if part and part != HOST)


def run(port: int, case: Case, length: str) -> "Tuple[Bag, Bag]":
    """The evidence of both ends."""
    name, *specific = case.test.split()
    one = lib.document_of(port, name, "-l", length, "--engine", case.engine, *case.args.split(), *specific,
                          host=case.host)["iterations"][0]
    near, far = ({name: value for name, value in one[end].items() if name.startswith(("flow.", "engine.", "udp."))}
                 for end in ("near", "far"))
    return near, far


# --- proofs: what the evidence of an end shows if the engine was used; `sends`: it sent several in a row ---

def several_a_call(bag: Bag, sends: bool) -> None:
    # What is in flight at the end of a warm-up counts as sent, although no counted call sent it.
    assert bag.get("engine.messages_sent", 0) <= bag["flow.sends"] <= bag.get("engine.messages_sent", 0) + 84, bag
    assert bag.get("engine.messages_received", 0) >= bag["flow.receives"], bag
    assert bag.get("engine.receive_calls", 0) <= bag.get("engine.messages_received", 0), bag
    assert not sends or bag["engine.send_calls"] < bag["engine.messages_sent"], bag


def cut_and_joined(bag: Bag, sends: bool) -> None:
    several_a_call(bag, sends)
    assert not sends or 0 < bag["engine.segmented_sends"] <= bag["engine.send_calls"], bag


PROOFS: "Dict[str, Callable[[Bag, bool], None]]" = {"batch": several_a_call, "segment": cut_and_joined}


def prove(bag: Bag, engine: str, sends: bool) -> None:
    assert not engine or bag["engine.name"] == engine, bag
    if engine in PROOFS:
        PROOFS[engine](bag, sends)


def engines_of(case: Case) -> "Tuple[str, str]":
    near, comma, far = case.engine.partition(",")
    return near, far if comma else near


# --- cases ---

def counted(port: int, case: Case) -> str:
    """Both ends counted the requested number."""
    transacts = "RR" in case.test.split()[0]
    near, far = run(port, case, "-1003" if transacts else "-50000")
    warm = "--warm-up" in case.args
    if transacts:
        assert near["flow.transactions"] == 1003, near
        # At the far end a warm-up ends slightly earlier or later. It may answer what a busy machine's client has
        # given up.
        assert warm or 0 <= far["flow.transactions"] - 1003 <= near.get("flow.requests_lost", 0), (near, far)
    else:
        assert near["flow.bytes_sent"] >= 50000, near
        assert near["flow.bytes_sent"] == far["flow.bytes_received"], (near, far)
        assert near["flow.sends"] == far["flow.receives"], (near, far)
        assert far.get("udp.lost", 0) == 0, far
    assert warm or near.get("engine.messages_sent", near["flow.sends"]) == near["flow.sends"], near
    here, there = engines_of(case)
    # The burst is sent at the beginning, in the warm-up; after that, one for each response.
    prove(near, here, ("-b 20" in case.test and not warm) or (not transacts and "-w" not in case.args))
    prove(far, there, False)
    return f"{near['flow.sends']} messages by {near.get('engine.send_calls', '?')} calls"


def blocks_are_never_cut(port: int) -> str:
    """Over loopback, blocks arrive as they were sent: ten datagrams per call."""
    near, far = run(port, Case("segment", "UDP_STREAM -- -m 1009", "--segment-size 100"), "-50000")
    assert near["flow.sends"] == 500 and near["engine.send_calls"] == near["engine.segmented_sends"] == 50, near
    assert far["engine.joined_receives"] == 50 and far["flow.receives"] == 500, far
    return "500 datagrams, 50 blocks"


def a_short_receive_cuts_off(port: int, engine: str) -> None:
    """Datagrams are truncated as they would be by single receive calls."""
    near, far = run(port, Case(engine, "UDP_STREAM -- -m 500 -M 100"), "-50000")
    assert near["flow.sends"] == far["flow.receives"] == 100 and far["flow.bytes_received"] == 10000, (near, far)


def the_daemon_sends(port: int, engine: str) -> str:
    """OMNI's timed stream from the daemon; datagrams that did not arrive are lost."""
    near, far = run(port, Case(engine, "OMNI -- -T udp -d recv -M 500", "-b ,20 -w ,5"), "1")
    prove(near, engine, False)
    prove(far, engine, False)
    assert near["flow.receives"] + near["udp.lost"] == far["flow.sends"] > 0, (near, far)
    return f"{far['flow.sends']} datagrams"


def the_real_netserver(engine: str) -> None:
    """The far end need not know about an engine at this end."""
    with lib.Daemon(program=str(lib.real_netperf() / "netserver"), grace=None) as daemon:
        for test, keys in ((STREAM, "LOCAL_SEND_CALLS,REMOTE_RECV_CALLS"), (BURSTS, "LOCAL_RECV_CALLS")):
            name, *specific = test.split()
            got = lib.run(lib.command(daemon.port, "-t", name, "-P", "0", "-l", "-1003" if "RR" in name else "-50000",
                                      "--engine", f"{engine},", *specific, "-k", keys), timeout=PATIENCE)
            counts = {line.split("=")[1] for line in got.out.split()}
            assert got.rc == 0 and counts == ({"1003"} if "RR" in name else {"100"}), got


def lacking() -> "Dict[str, str]":
    """The engines that this machine lacks, with the reasons from the list for a test that all engines can run."""
    rows = lib.run([lib.netperf(), "-t", "UDP_STREAM", "--engine", "list"], timeout=20).out.splitlines()[1:]
    return {row.split()[0]: row.partition("; not here: ")[2] for row in rows if "; not here: " in row}


def suite(report: lib.Report) -> None:
    with lib.Daemon() as daemon:
        for args, says in REFUSED:
            report.case(f"refused: {args}", partial(lib.refused, daemon.port, args, says))
        for engine in PROOFS:
            report.case(f"{engine} and the real netserver", partial(the_real_netserver, engine),
                        unless=lacking().get(engine, ""))
        if report.lacks("documents", lib.no_documents()):
            return
        missing, six = lacking(), lib.has_ipv6()
        able = [case for case in CASES if not missing.keys() & set(engines_of(case)) and (six or case.host == HOST)]
        if len(able) < len(CASES):
            report.skip(f"{len(CASES) - len(able)} cases", f"{missing or 'no IPv6'}")
        report.cases([(name_of(case), partial(counted, daemon.port, case)) for case in able], AT_ONCE)
        for engine in PROOFS.keys() - missing.keys():
            report.case(f"the daemon sends: {engine}", partial(the_daemon_sends, daemon.port, engine))
            report.case(f"a short receive cuts off: {engine}", partial(a_short_receive_cuts_off, daemon.port, engine))
        if "segment" not in missing:
            report.case("blocks are never cut", partial(blocks_are_never_cut, daemon.port))


if __name__ == "__main__":
    lib.main(suite)
