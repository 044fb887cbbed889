"""netperf --preflight: facts about both hosts, rule by rule; what a daemon does not disclose; planted faults."""

import os
import re
import socket
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import kernel
import lib
import ours

LINE = re.compile(r"(ok|look|warn|unread) +(local|remote) +([\w.:-]+): ([^|]*)"
                  r"(?: \| ([^|]+) \| ([^|]+))?$")
NAME = f"pf{os.getpid()}"
Facts = Dict[Tuple[str, str], Tuple[str, str]]


def preflight(*args: str, prefix: Sequence[str] = ()) -> lib.Result:
    return lib.run([*prefix, lib.netperf(), "--preflight", *args], timeout=20)


def facts_of(got: lib.Result) -> Tuple[Facts, List[str]]:
    """(end, rule) to (level, state), and the lines that are not findings."""
    assert got.rc == 0 and not got.err, f"{got.rc}: {got.err!r}"
    facts: Facts = {}
    others = []
    for line in got.out.splitlines():
        match = LINE.match(line)
        if match:
            level, end, name, state, why, remedy = match.groups()
            assert (end, name) not in facts, f"twice: {line}"
            assert (why is not None) == (level in ("look", "warn")), line
            facts[end, name] = level, state
        else:
            others.append(line)
    return facts, others


def both_ends(*args: str) -> None:
    with lib.Daemon(args=args) as daemon:
        got = preflight("-H", "127.0.0.1", "-p", str(daemon.port))
        assert got.seconds < 5 + lib.SLACK, f"{got.seconds:.1f} s"
        facts, others = facts_of(got)
        assert [line.split(":")[0] for line in others] == ["summary", "summary", "local", "remote"], others
        for end, line in zip(("local", "remote"), others):
            levels = [level for (whose, _), (level, _) in facts.items() if whose == end]
            for level in ("warn", "look", "ok", "unread"):
                assert re.search(fr"^summary: {end}: .*\b{levels.count(level)} {level}\b", line), (line, levels)
        for end in ("local", "remote"):
            assert facts[end, "mtu"] == ("ok", "65536 at both ends"), facts[end, "mtu"]
            for name in ("hypervisor", "clock-source", "governor", "tcp-rmem", "qdisc",
                         "offloads", "other-traffic", "congestion"):
                assert (end, name) in facts, f"{end} {name}: {got.out}"
        shut = [f"{name}: {state}" for (end, name), (level, state) in facts.items()
                if "ermi" in state and name != "irqbalance"]  # it may not list processes
        assert not shut, f"kept from: {shut}"


def unit_families() -> List[str]:
    """The address families that systemd's unit allows the daemon."""
    build = Path(os.environ.get("top_builddir") or lib.TOP)
    unit = (build / "doc/systemd/netserver.service").read_text()
    found = re.findall(r"^RestrictAddressFamilies=(.+)$", unit, re.M)
    assert len(found) == 1, unit
    return list(found[0].split())


def kept_to(kept: Sequence[str]) -> Sequence[str]:
    """The command prefix that restricts a command to these address families."""
    return kernel.without("EAFNOSUPPORT", ":".join(("other-than", *kept)))


def told_under(prefix: Sequence[str], host: str = "127.0.0.1",
               client: Sequence[str] = ()) -> Tuple[Facts, List[str]]:
    """What a daemon started that way reports, and what it could not read."""
    with lib.Daemon(prefix=prefix) as daemon:
        got = preflight("-H", host, "-p", str(daemon.port), prefix=client)
    facts, _ = facts_of(got)
    return facts, [name for (end, name), (level, state) in facts.items()
                   if end == "remote" and level == "unread" and "ddress family" in state]


def families_of_the_unit() -> None:
    """Everything that the daemon reports is also reported under systemd's unit."""
    alone_facts, unread = told_under([])
    assert not unread, unread
    facts, unread = told_under(kept_to(unit_families()))
    assert not unread and set(facts) == set(alone_facts), set(facts) ^ set(alone_facts)


def unread_of(kept: Sequence[str], prefix: Sequence[str] = (), *where: Any) -> "set[str]":
    """The rules that a daemon with these address families reports as unread: it omits none."""
    every, _ = told_under(prefix, *where)
    facts, unread = told_under([*prefix, *kept_to(kept)], *where)
    gone = [name for end, name in every if end == "remote" and (end, name) not in facts]
    assert not gone, f"gone: {sorted(gone)}"
    return set(unread)


def families_refused() -> None:
    """Without rtnetlink no rule is omitted: those that need it are reported as unread, with the reason."""
    unread = unread_of(["AF_INET", "AF_INET6", "AF_UNIX"])
    assert {"link", "gso-max", "qdisc"} <= unread, unread


def families_refused_in(lab: lib.Lab) -> None:
    """With an address other than lo's, whose interface can't be found without rtnetlink."""
    unread = unread_of(["AF_INET", "AF_UNIX"], lab.server, "10.77.0.2", lab.client)
    assert {"link", "speed", "mtu", "offloads", "ring", "coalescing", "qdisc",
            "gso-max", "queues", "irq-cpus", "other-traffic"} == unread, unread


def local_facts(got: lib.Result) -> List[str]:
    """The lines that are not findings, of which there are none of the other end."""
    facts, others = facts_of(got)
    assert {end for end, _ in facts} == {"local"}
    assert others[-1].startswith("only this end is shown: "), others
    return others


def one_end(says: str, daemon: lib.Daemon) -> None:
    """One line says why, and the daemon continues to serve."""
    others = local_facts(preflight("-H", "127.0.0.1", "-p", str(daemon.port)))
    assert len(others) == 3 and says in others[2], others
    test = lib.run(lib.command(daemon.port, "-t", "TCP_RR", "-l", "-100"), timeout=20)
    assert test.rc == 0 and not test.err, test.err


def kept_to_itself() -> None:
    with lib.Daemon(args=["--no-evidence"]) as daemon:
        one_end("127.0.0.1", daemon)


def stock() -> None:
    with lib.Daemon(program=str(lib.real_netperf() / "netserver"), grace=None) as daemon:
        one_end("127.0.0.1", daemon)


def alone(*args: str) -> None:
    """Nothing is asked of a daemon, and no daemon is needed."""
    local_facts(preflight(*args))


def nobody_there() -> None:
    got = preflight("-H", "127.0.0.1", "-p", str(lib.free_port()))
    assert got.rc == 255, got.rc
    lib.error_line(got, "netperf", "establish the control connection")


def greeted_late() -> None:
    """A client without a greeting gets a session that may read nothing: it grants plans, but no facts."""
    with lib.Daemon() as daemon, socket.create_connection(("127.0.0.1", daemon.port)) as control:
        control.settimeout(60)
        control.sendall(ours.frame(101, -1))
        assert ours.receive(control).error == 998
        control.sendall(ours.hello(ours.FACTS | ours.PLANS))
        came = ours.receive(control)
        assert came.kind == ours.WELCOME and ours.number(2, ours.PLANS) in came.body, came
        control.sendall(ours.message(ours.EVIDENCE, ours.number(1, 2)))
        assert ours.receive(control)[:2] == (ours.ERROR, 13)


def others_congestion() -> str:
    """A congestion control that is loaded, but restricted; empty if there is none."""
    place = Path("/proc/sys/net/ipv4")
    allowed = (place / "tcp_allowed_congestion_control").read_text().split()
    there = (place / "tcp_available_congestion_control").read_text().split()
    return ([name for name in there if name not in allowed] + [""])[0]


def congestion(name: str) -> None:
    """A session with evidence has no capability for -K: a line names the setting that restricts it."""
    for args in ([], ["--user", "root"]):
        with lib.Daemon(args=args) as daemon:
            got = lib.run([lib.netperf(), "--explain", "-H", "127.0.0.1", "-p", str(daemon.port),
                           "-l", "1", *lib.PACED, "--", "-K", f",{name}"], timeout=20)
            assert got.rc == 255, got
            lib.error_line(got, "netperf", name, "net.ipv4.tcp_allowed_congestion_control", f") {name}\"")


def low_port() -> None:
    """The daemon has given up the capability for low ports; a line says how to have them."""
    with lib.Daemon() as daemon:
        got = lib.run([lib.netperf(), "-p", str(daemon.port), "-l", "1", *lib.PACED, "--", "-P", "0,1"], timeout=20)
        assert got.rc == 255, got
        lib.error_line(got, "netperf", "port 1 ", "--user root", "net.ipv4.ip_unprivileged_port_start=1)")


def planted(lab: lib.Lab) -> None:
    """A shaper, small segments, offloads off, MTUs that differ: each is reported for its end."""
    with lib.Daemon(prefix=lab.server) as daemon:
        where = ["-H", "10.77.0.2", "-p", str(daemon.port)]
        facts, _ = facts_of(preflight(*where, prefix=lab.client))
        for end in ("local", "remote"):
            assert facts[end, "mtu"] == ("ok", "1500 at both ends"), facts[end, "mtu"]
            assert facts[end, "qdisc"] == ("warn", "tbf, at most 100 Mbit/s"), facts[end, "qdisc"]
            assert facts[end, "gso-max"][0] == "look", facts[end, "gso-max"]
            assert facts[end, "offloads"][0] == "warn", facts[end, "offloads"]
            assert facts[end, "speed"][0] == "unread", facts[end, "speed"]  # veth has none
        assert facts["local", "path-mtu"][0] == "ok"
        lib.must([*lab.server, "ip", "link", "set", "lab0", "mtu", "1400"])
        lib.must([*lab.server, "ethtool", "-K", "lab0", "tso", "on", "gso", "on", "gro", "on"])
        facts, _ = facts_of(preflight(*where, prefix=lab.client))
        assert facts["local", "mtu"] == ("warn", "1500, the other end's 1400"), facts
        assert facts["remote", "mtu"] == ("warn", "1400, the other end's 1500"), facts
        assert facts["local", "offloads"][0] == "warn", facts["local", "offloads"]
        assert facts["remote", "offloads"] == ("ok", "on"), facts["remote", "offloads"]


def in_a_lab() -> None:
    with lib.Lab(NAME, "--rate", "100mbit", "--mtu", "1500") as lab:
        planted(lab)
        if not kernel.lacks():
            families_refused_in(lab)


def suite(report: lib.Report) -> None:
    report.case("both ends", both_ends)
    report.case("both ends, not confined", partial(both_ends, "--no-sandbox"))
    report.case("both ends, without a process each", partial(both_ends, "-f"))
    if os.geteuid() == 0:
        report.case("both ends, as root", partial(both_ends, "--user", "root"))
    report.case("the families of systemd's unit", families_of_the_unit, unless=kernel.lacks())
    report.case("no AF_NETLINK", families_refused, unless=kernel.lacks())
    report.each((kept_to_itself, stock, alone))
    report.case("no control connection", partial(alone, "-N", "-H", "127.0.0.1"))
    report.each((nobody_there, greeted_late))
    name = others_congestion()
    report.case("-K with evidence", partial(congestion, name),
                unless="every congestion control is free" if not name else "not root" if os.geteuid() else "")
    free = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text().strip() in ("0", "1")
    report.case("a low data port", low_port, unless="any user may have them here" if free else "")
    report.case("planted faults", in_a_lab, unless=lib.no_lab())


if __name__ == "__main__":
    lib.main(suite)
