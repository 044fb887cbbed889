#!/usr/bin/env python3
"""Valid values of options, compared with the real netperf 2.7.0: each of its options with an argument is given 0, -1,
a reversed pair, a blank, nothing, a suffix, half a pair, and words in upper case. Either both run the test and report
the same (SETTINGS), or neither does; intended differences are in DIFFERS. --table prints options x values. Options
that Debian's build lacks (-b, -w, -k, -K, -q) are left out."""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, NamedTuple, Tuple

import alone
import lib

AT_ONCE = 4
VALUES = ("0", "-1", "20000,10000", " ", "", "1K", ",64", "64,")
RANGES = ("0,0", "0,30000", "30000,20000", "70000")
SETTINGS = (
    "LSS_SIZE_REQ,LSR_SIZE_REQ,RSS_SIZE_REQ,RSR_SIZE_REQ,LOCAL_SEND_SIZE,LOCAL_RECV_SIZE,REMOTE_SEND_SIZE,REMOTE_RECV_SIZE,"
    "REQUEST_SIZE,RESPONSE_SIZE,LOCAL_SEND_WIDTH,LOCAL_RECV_WIDTH,REMOTE_SEND_WIDTH,REMOTE_RECV_WIDTH,LOCAL_SEND_ALIGN,"
    "LOCAL_RECV_ALIGN,REMOTE_SEND_ALIGN,REMOTE_RECV_ALIGN,LOCAL_SEND_OFFSET,LOCAL_RECV_OFFSET,REMOTE_SEND_OFFSET,"
    "REMOTE_RECV_OFFSET,BURST_SIZE,CONFIDENCE_LEVEL,CONFIDENCE_INTERVAL,CONFIDENCE_ITERATION,DIRECTION,PROTOCOL,SOCKET_TYPE,"
    "LOCAL_NODELAY,REMOTE_NODELAY,LOCAL_CORK,REMOTE_CORK,LOCAL_SOCKET_PRIO,REMOTE_SOCKET_PRIO,LOCAL_SOCKET_TOS,"
    "REMOTE_SOCKET_TOS,LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL,THROUGHPUT_UNITS,SOURCE_FAMILY,DEST_FAMILY,LOCAL_CPU_BIND,"
    "REMOTE_CPU_BIND")


class Option(NamedTuple):
    letter: str
    test: str = "TCP_RR"
    more: Tuple[str, ...] = ()      # in addition to VALUES
    without: Tuple[str, ...] = ()   # excluded from them, as the test would take forever
    behind: bool = False            # after --

    def __str__(self) -> str:
        return f"{self.test} -- -{self.letter}" if self.behind else f"-{self.letter}"

    def values(self) -> Tuple[str, ...]:
        return tuple(value for value in (*VALUES, *self.more) if value not in self.without)


def behind(test: str, letter: str, *more: str) -> Option:
    return Option(letter, test, more, behind=True)


OPTIONS = (
    *map(Option, "aABDFikonOpPTWZvy"), Option("s", without=("1K", "20000,10000", "64,")), Option("l", without=("0", "1K", "20000,10000", " ", "", ",64", "64,")),
    Option("f", more=("M", "Z", "mk")), Option("H", more=("127.0.0.1,INET", "127.0.0.1,", "127.0.0.1,7")),
    Option("L", more=("127.0.0.1,INET", "127.0.0.1,")), Option("I", more=("95,-1", "99,0", "90")),
    Option("t", more=("tcp_rr", "Tcp_Rr")), Option("Y", more=("EF", "0x0,0X20")),
    *(behind(test, "p", *RANGES) for test in ("TCP_CC", "TCP_CRR", "TCP_RR", "TCP_STREAM")),
    behind("TCP_RR", "P", "0,0"), behind("TCP_RR", "r"), behind("UDP_RR", "r"), behind("TCP_CRR", "r"), behind("TCP_STREAM", "s"),
    behind("TCP_STREAM", "S"), behind("TCP_STREAM", "m"), behind("TCP_STREAM", "M"), behind("UDP_STREAM", "m"), behind("TCP_RR", "b"),
    behind("UDP_RR", "e"), behind("TCP_STREAM", "G"), behind("UDP_STREAM", "R"), behind("UDP_STREAM", "l"), behind("TCP_STREAM", "W"),
    behind("TCP_STREAM", "K", "RENO"), behind("OMNI", "d", "SEND", "RECV", "RR"), behind("OMNI", "T", "TCP", "UDP"), behind("TCP_RR", "H"),
    behind("TCP_RR", "L"), behind("TCP_RR", "u"), behind("TCP_RR", "w"), behind("TCP_RR", "j"),
)

PAIRS = ("20000,10000", ",64", "64,")
DIFFERS: Dict[str, Dict[str, Tuple[str, ...]]] = {     # reason: options and their values; *: all options
    "an error: it is no number, of which netperf reads a part, or uses a default": {
        "*": (" ", ""), **dict.fromkeys(("-n", "-P", "-v", "-s", "UDP_STREAM -- -l", "TCP_STREAM -- -W"), PAIRS),
        **dict.fromkeys((f"{test} -- -p" for test in ("TCP_CC", "TCP_CRR", "TCP_RR", "TCP_STREAM")), ("1K",)),
        **dict.fromkeys(("UDP_RR -- -e", "TCP_STREAM -- -G", "UDP_STREAM -- -R"), (*PAIRS, "1K")), "TCP_RR -- -b": (",64", "64,")},
    "an error: out of range": {
        "-a": ("20000,10000",), "-A": ("20000,10000",), "-o": ("-1",), "-O": ("-1",), "-I": ("95,-1",), "TCP_STREAM -- -m": ("0",),
        **dict.fromkeys((f"{test} -- -p" for test in ("TCP_CC", "TCP_CRR")), ("-1", "70000")), "UDP_STREAM -- -m": ("0",),
        **dict.fromkeys((f"{test} -- -p" for test in ("TCP_RR", "TCP_STREAM")), ("-1",)), "TCP_RR -- -b": ("-1",),
        "UDP_RR -- -e": ("0", "-1"), "UDP_STREAM -- -R": ("-1",), "UDP_STREAM -- -l": ("-1", "1K")},
    "a suffix is read, which netperf cuts off": {"TCP_RR -- -b": ("1K",)},
    "netperf ends by an assertion": {"TCP_STREAM -- -m": ("-1",), "UDP_STREAM -- -m": ("-1",)},
    "an error: no such congestion control; netperf goes on with another": {"TCP_STREAM -- -K": ("0", "-1", "1K", "RENO", *PAIRS)},
    "an error: the address can't be had; netperf goes on with another": {"TCP_RR -- -L": ("20000,10000", "64,")},
    "the far end's daemon has no privileges: no priority above 6, no port below 1024": {
        "-y": ("20000,10000", "1K", ",64"), "TCP_RR -- -P": (",64",)},
    "an end that does not receive has no size for it": {"TCP_STREAM -- -M": ("20000,10000", ",64")},
    "OMNI has -c for connections; other numbers than 2, 4 and 6 mean the default": {"OMNI -- -d": ("20000,10000", "1K", "64,")},
    "the protocol is another one, in whose figures netperf has TCP's congestion control": {
        "OMNI -- -T": ("0", "-1", " ", "", "1K", *PAIRS)},
    "the unit stays": {"-f": ("",)},
    "the host stays": {"-H": (",64",), "-L": (",64",)},
}


def command(program: str, port: int, option: Option, value: str) -> "list[str]":
    # netperf waits forever for a lost datagram: a receive buffer holds these, 768 bytes each
    bytes_or_transactions = "-8000" if option.test == "UDP_STREAM" else "-20000" if option.test[-2:] in ("AM", "NI") else "-3"
    words = [program, "-P", "0", "-t", option.test, "-l", bytes_or_transactions]
    words += [] if str(option) == "-p" else ["-p", str(port)]
    words += [] if str(option) == "-H" else ["-H", "127.0.0.1"]
    figures = [] if option.test == "TCP_CC" else ["-k", SETTINGS]
    given = [f"-{option.letter}", value]
    return [*words, "--", *figures, *given] if option.behind else [*words, *given, "--", *figures]


def outcome(got: lib.Result) -> "str | Dict[str, str]":
    if got.rc != 0:
        return "refused"
    pairs = [line.partition("=") for line in got.out.splitlines()]
    return {name: figure for name, _, figure in pairs if name in SETTINGS.split(",")}


def compare(real: str, real_port: int, port: int, option: Option, value: str) -> Tuple[str, str]:
    """Whether both behave alike, and if not, how they differ."""
    theirs = outcome(lib.run(command(real, real_port, option, value), 10))
    mine = outcome(lib.run(command(lib.netperf(), port, option, value), 10))
    if theirs == mine:
        return "same", ""
    if "refused" in (theirs, mine):
        return "ran" if theirs != "refused" else "refused", "refused" if mine == "refused" else "ran"
    assert isinstance(theirs, dict) and isinstance(mine, dict)
    names = [name for name in theirs if theirs[name] != mine.get(name)]
    return ",".join(f"{name}={theirs[name]}" for name in names), ",".join(str(mine.get(name)) for name in names)


def reason(option: Option, value: str) -> str:
    return next((why for why, rows in DIFFERS.items() if value in (*rows.get("*", ()), *rows.get(str(option), ()))), "")


def table(cells: "Dict[Option, Dict[str, str]]") -> None:
    for option, row in cells.items():
        print(f"| `{option}` | " + " | ".join(f"`{value}` {how}" for value, how in row.items()) + " |", flush=True)


def suite(report: lib.Report) -> None:
    try:
        real = lib.real_netperf()
    except lib.Skipped as why:
        lib.skip(f"the real netperf: {why}")
    with lib.Daemon() as ours, lib.Daemon(program=str(real / "netserver"), grace=None) as theirs:
        asked = [(option, value) for option in OPTIONS for value in option.values()]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(lambda cell: compare(str(real / "netperf"), theirs.port, ours.port, *cell), asked))
        for at, cell in enumerate(asked):   # netperf gives up some tests if other processes delay it
            if found[at][0] != "same" and not reason(*cell):
                found[at] = compare(str(real / "netperf"), theirs.port, ours.port, *cell)
    cells: "Dict[Option, Dict[str, str]]" = {option: {} for option in OPTIONS}
    wrong: "Dict[Option, list[str]]" = {option: [] for option in OPTIONS}
    for (option, value), (netperf, mine) in zip(asked, found):
        why = reason(option, value)
        cells[option][value] = "same" if netperf == "same" else "differs" if why else "WRONG"
        if netperf != "same" and not why:
            wrong[option].append(f"{value!r}: netperf {netperf}, ours {mine}")
    for option in OPTIONS:
        report.check(str(option), not wrong[option], "; ".join(wrong[option]))
    if "--table" in sys.argv:
        table(cells)


if __name__ == "__main__":
    alone.enter()
    lib.main(suite)
