"""Ours and the real netperf 2.7.0 with each other: every classic test, IPv4 and IPv6, timed and counted; then single
options. A cell is one run of a client against a daemon: its output must have the classic layout and consistent
figures. If the real programs are not available, their columns are skipped.
"""

import math
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import layout
import lib

AT_ONCE = 2
HOSTS = {"IPv4": ("127.0.0.1", "AF_INET"), "IPv6": ("::1", "AF_INET6")}
DIVISORS = {"G": 2**30, "M": 2**20, "K": 2**10, "B": 1, "g": 1e9 / 8, "m": 1e6 / 8, "k": 1e3 / 8}
UNITS = {"G": "GBytes", "M": "MBytes", "K": "KBytes", "B": "Bytes",
         "g": "10^9bits", "m": "10^6bits", "k": "10^3bits"}
UNDER_WAY = 40_000_000  # bytes: the largest socket buffers of both ends
PASSPHRASE = "sesame"
TWICE = re.compile("^catcher: timer popped.*\n", re.M)
MEASURABLE = 0.05  # seconds, below which two decimals of elapsed time are not enough


class Wrong(Exception):
    """Something is wrong in a cell; the text says what."""


class Pairing(NamedTuple):
    client: str
    daemon: str

    def __str__(self) -> str:
        return f"{self.client} x {self.daemon}"


PAIRINGS = (Pairing("ours", "real"), Pairing("real", "ours"), Pairing("ours", "ours"))


class Known(NamedTuple):
    """A visible peculiarity of the real peer: the reason, and the text of Wrong; empty if it does not always occur,
    and only tolerances are wider."""
    why: str
    says: str = ""


class Run(NamedTuple):
    """What a judge may examine."""
    pairing: Pairing
    cell: "Cell"
    got: lib.Result
    busy: float          # percent of all CPUs, measured by this program
    bound: "Dict[str, str]"  # CPUs that the client and the sessions were bound to
    late: float          # seconds: how late this program was woken
    loop: float          # seconds of CPU used by the busy loop

    def slack(self) -> float:
        """Seconds added to a time limit. Wake-ups may be late at both ends, at the start and at the end. Timers of
        the real program, for which nothing should wait, take longer."""
        return 2.0 + 4 * self.late


class Cell(NamedTuple):
    """A run, and requirements beyond the layout."""
    row: str
    test: str
    length: float                   # -l: seconds, or a negative count
    host: str = "127.0.0.1"
    options: Tuple[str, ...] = ()   # global ones
    specific: Tuple[str, ...] = ()  # after --
    style: layout.Style = layout.Style(2)
    unit: str = ""                  # of -f
    shown: "Dict[str, layout.Value]" = {}  # figures that must be printed like this
    most_per_recv: float = math.inf
    lines: Tuple[str, ...] = ()     # instead of the classic layout
    # Called with the run instead of all other checks; raises Wrong.
    judge: "Optional[Callable[[Run], None]]" = None
    locked: bool = False            # by a daemon that requires PASSPHRASE
    load: bool = False              # with a loop that keeps a CPU busy
    known: "Dict[str, Known]" = {}  # by pairing: peculiarities of the real peer


# ---- figures ------------------------------------------------------------------------------------

def need(holds: bool, what: str) -> None:
    if not holds:
        raise Wrong(what)


def need_near(what: str, value: float, wanted: float, slack: float) -> None:
    slack += abs(wanted) * 1e-5  # netperf uses single precision
    need(abs(value - wanted) <= slack, f"{what}: {value} is not {wanted} +/- {slack:.4g}")


def need_rate(what: str, rate: float, elapsed: float, amount: float) -> None:
    """rate and elapsed time are rounded to two decimals, the amount is exact."""
    if elapsed < MEASURABLE:
        return
    low, high = ((rate + d) * (elapsed + d) * (1 + d / 500) for d in (-0.005, 0.005))
    need(low <= amount <= high, f"{what}: {rate} x {elapsed} s is not {amount:.6g}")


def check_elapsed(elapsed: float, run: Run) -> None:
    length = run.cell.length
    if length > 0 and not lib.QUICK:
        most = 1.10 * length + run.slack()
        need(0.99 * length <= elapsed <= most, f"elapsed time {elapsed} s, not {most:.2f}")


def check_stream(f: layout.Fields, cell: Cell) -> None:
    """The rate counts received data; what was received was sent, and all that was sent was received, except in
    TCP_MAERTS."""
    sent, moved = f["sends"] * f["send_size"], f["bytes"]
    if cell.test == "TCP_SENDFILE":  # its bytes have four digits, and its last call is not counted
        moved = f["sends"] * f["per_send"]
        need_near("bytes", f["bytes"], moved, moved * 5e-4)
        need_near("sends x size", sent, moved, f["send_size"] + f["sends"] * 0.005)
    elif cell.test == "TCP_MAERTS":  # its ends stop independently, the sender within a send
        need(-f["send_size"] <= sent - moved <= UNDER_WAY, f"{moved} bytes arrived of {sent}")
    else:
        # The end of a timed test may truncate the last send; the real client does not count that part.
        need(sent - f["send_size"] < moved <= sent, f"{moved} bytes by {f['sends']} sends")
    need_near("receives x bytes per receive", f["recvs"] * f["per_recv"], moved,
              (f["recvs"] + f["sends"]) * 0.005)
    need(f["per_recv"] <= cell.most_per_recv, f"{f['per_recv']} bytes per receive")
    need_rate("throughput", f["rate"], f["elapsed"], moved / DIVISORS[cell.unit or "m"])
    if cell.length < 0:
        sends = math.ceil(-cell.length / f["send_size"])
        need(f["sends"] == sends, f"{f['sends']} sends instead of {sends}")
        need(moved >= -cell.length, f"only {moved} bytes")


def check_datagrams(f: layout.Fields, cell: Cell) -> None:
    divisor = DIVISORS[cell.unit or "m"] / f["send_size"]
    need(f["recvs"] <= f["sends"], f"received {f['recvs']} of {f['sends']}")
    need(f["recvs"] > 0, "received nothing")
    need(f["far_elapsed"] == f["elapsed"], "the two rows differ in time")
    need_rate("send rate", f["rate"], f["elapsed"], f["sends"] / divisor)
    need_rate("receive rate", f["far_rate"], f["elapsed"], f["recvs"] / divisor)
    if cell.length < 0:
        sends = math.ceil(-cell.length / f["send_size"])
        need(f["sends"] == sends, f"{f['sends']} sends instead of {sends}")


def check_transactions(f: layout.Fields, cell: Cell) -> None:
    each = (f["request"] + f["response"]) / DIVISORS[cell.unit] if cell.unit else 1
    if cell.length < 0:
        need_rate("rate", f["rate"], f["elapsed"], -cell.length * each)
    if "trans_rate" not in f:
        return
    trans_rate = f["trans_rate"]
    need_near("both rates", f["rate"], trans_rate * each, 0.006)
    need_near("latency", f["latency"], 1e6 / trans_rate * (1 + f.get("burst", 0)), 0.002)
    for flow, size in (("outbound", "request"), ("inbound", "response")):
        wanted = trans_rate * f[size] / DIVISORS[cell.unit or "m"]
        need_near(flow, f[flow], wanted, 0.001)


class Kind(NamedTuple):
    """Parameters of a classic test."""
    check: Callable[[layout.Fields, Cell], None]
    count: int                      # for a few tenths of a second
    quick_count: int
    specific: Tuple[str, ...] = ()  # of a counted run


# Counted UDP_STREAM sends less than a receive buffer holds, as losses are not made up for.
KINDS = {
    "TCP_STREAM": Kind(check_stream, 409_600_000, 4_096_000),
    "TCP_MAERTS": Kind(check_stream, 409_600_000, 4_096_000),
    "TCP_SENDFILE": Kind(check_stream, 409_600_000, 4_096_000),
    "TCP_RR": Kind(check_transactions, 3000, 200),
    "TCP_CRR": Kind(check_transactions, 1500, 100),
    "TCP_CC": Kind(check_transactions, 2000, 100),
    "UDP_STREAM": Kind(check_datagrams, 65536, 65536, ("-m", "1024")),
    "UDP_RR": Kind(check_transactions, 3000, 200),
}


def counted(test: str, quick: bool = lib.QUICK) -> int:
    return -(KINDS[test].quick_count if quick else KINDS[test].count)


# ---- one cell -----------------------------------------------------------------------------------

LOCK = ("-Z", PASSPHRASE)
BUSY_LOOP = ("sh", "-c", "while :; do :; done")


class Bed:
    """The programs, and two daemons of each kind, the second of which requires the passphrase."""

    def __init__(self, real: Optional[Path]) -> None:
        self._stack = ExitStack()
        self._clients = {"ours": lib.netperf()}
        self._daemons: "Dict[Tuple[str, bool], lib.Daemon]" = {}
        self._real = real

    def __enter__(self) -> "Bed":
        for locked, args in ((False, ()), (True, LOCK)):
            self._daemons["ours", locked] = self._stack.enter_context(
                lib.Daemon(args=args))
            if self._real:
                self._daemons["real", locked] = self._stack.enter_context(lib.Daemon(
                    args=args, grace=None, program=str(self._real / "netserver")))
        if self._real:
            self._clients["real"] = str(self._real / "netperf")
        return self

    def __exit__(self, *fault: object) -> None:
        self._stack.__exit__(*fault)

    def offers(self, pairing: Pairing) -> bool:
        return self._real is not None or "real" not in pairing

    def run(self, pairing: Pairing, cell: Cell) -> Run:
        style = cell.style
        daemon = self._daemons[pairing.daemon, cell.locked]
        cmd = [self._clients[pairing.client], "-H", cell.host, "-t", cell.test,
               "-p", str(daemon.port), "-l", str(cell.length),
               "-v", str(style.verbosity), *([] if style.heads else ["-P", "0"]),
               *(["-f", cell.unit] if cell.unit else []), *cell.options,
               *(["--", *cell.specific] if cell.specific else [])]
        start = time.monotonic()
        with ExitStack() as stack:
            beside = stack.enter_context(lib.Started(BUSY_LOOP)) if cell.load else None
            before = cpu_ticks()
            with lib.Started(cmd) as client:
                bound = see_bound(client, daemon, cell) if cell.judge and "-T" in cell.options else {}
                got = client.finish(timeout=180)
            busy = busy_share(before, cpu_ticks())
            loop = lib.cpu_seconds(beside.pid) if beside else 0.0
        # Sometimes the real client reports that its timer expired twice.
        out = got.out if pairing.client == "ours" else TWICE.sub("", got.out)
        return Run(pairing, cell, got._replace(out=out), busy, bound, lib.late_since(start), loop)


def cpu_ticks() -> Tuple[int, int]:
    """Clock ticks of all CPUs since boot: idle, and total."""
    ticks = [int(t) for t in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return ticks[3], sum(ticks)


def busy_share(before: Tuple[int, int], after: Tuple[int, int]) -> float:
    idle, total = (b - a for a, b in zip(before, after))
    return 100.0 - 100.0 * idle / total if total else 0.0


def see_bound(client: lib.Started, daemon: lib.Daemon, cell: Cell) -> "Dict[str, str]":
    """The CPU lists of the client and the session in the middle of a test: as soon as they are those of -T, or at the
    end."""
    near, far = cell.options[cell.options.index("-T") + 1].split(",")
    seen = {"client": "gone", "sessions": ""}

    def both() -> bool:
        now = {"client": allowed(client.pid),
               "sessions": " ".join(sorted(map(allowed, daemon.children())))}
        if now["client"] != "gone":
            seen.update(now)
        return now["client"] == "gone" or now["client"] == near and far in now["sessions"].split()

    lib.wait_for(both, 60)
    return seen


def allowed(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "gone"
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)", text, re.M)
    return found[1] if found else "?"


def longest(pairing: Pairing, test: str) -> float:
    """Maximum duration in seconds for a measurement of up to one second. Neither side waits for a timer of the other,
    except for the real netserver's in TCP_CC, and when the datagrams that end UDP_STREAM are lost."""
    waits = pairing.daemon == "real" and test == "TCP_CC"
    return 6.5 if waits or "real" in pairing and test == "UDP_STREAM" else 1.5


def need_success(got: lib.Result) -> None:
    need(got.rc == 0, f"exit status {got.rc}: {got.out.strip()} {got.err.strip()}")
    need(not lib.PASSED_OVER.sub("", got.err), f"stderr: {got.err.strip()}")


def check_cell(bed: Bed, pairing: Pairing, cell: Cell) -> None:
    if cell.length == 1 and not cell.judge and "real" not in pairing:    # it takes whole seconds
        cell = cell._replace(length=0.4)
    run = bed.run(pairing, cell)
    if cell.judge:
        cell.judge(run)
    else:
        check_layout(run, pairing, cell)


def check_layout(run: Run, pairing: Pairing, cell: Cell) -> None:
    got = run.got
    need_success(got)
    templates = cell.lines or layout.expected(layout.load(cell.test), cell.style)
    fields = layout.match(templates, got.out)
    for name, value in cell.shown.items():
        need(fields.get(name) == value, f"{name} is {fields.get(name)!r} instead of {value!r}")
    if "elapsed" in fields:
        check_elapsed(fields["elapsed"], run)
    if cell.style.verbosity == 2 and not cell.lines:
        KINDS[cell.test].check(fields, cell)
    if cell.length > 0 and not lib.QUICK:
        limit = longest(pairing, cell.test) + run.slack()
        need(got.seconds <= limit, f"took {got.seconds:.2f} s, not {limit:.2f}")


# ---- the cells ----------------------------------------------------------------------------------

def matrix() -> List[Cell]:
    """Every test, IP version and way to end."""
    cells = []
    for test, kind in KINDS.items():
        for family, (host, name) in HOSTS.items():
            shown = {"lfam": name, "rfam": name, "tail": ""}
            cells.append(Cell(f"{test} {family} timed", test, 1, host, shown=shown))
            cells.append(Cell(f"{test} {family} counted", test, counted(test), host,
                              specific=kind.specific, shown=shown))
    return cells


def styles() -> List[Cell]:
    """Every test at every verbosity, with and without headers."""
    return [Cell(f"{test} -v {style.verbosity} -P {style.heads:d}", test, counted(test, True),
                 specific=kind.specific, style=style)
            for test, kind in KINDS.items()
            for style in (layout.Style(v, heads) for v in (0, 1, 2, 3) for heads in (True, False))]


def option(test: str, *words: str, length: Optional[int] = None, most_per_recv: float = math.inf,
           **shown: layout.Value) -> Cell:
    """A run with test-specific options and the figures that they must lead to."""
    return Cell(f"{test} {' '.join(words)}", test, length or counted(test, True), specific=words,
                shown=shown, most_per_recv=most_per_recv)


def globally(test: str, *words: str, **shown: layout.Value) -> Cell:
    """The same with global options."""
    return option(test, *words, **shown)._replace(options=words, specific=())


def on_ports(test: str) -> Cell:
    """Separate ports, as other rows run at the same time."""
    near, far = lib.free_port(), lib.free_port()
    cell = option(test, "-P", f"{near},{far}", *KINDS[test].specific, lport=near, rport=far)
    return cell._replace(row=f"{test} -P")


def in_unit(test: str, unit: str) -> Cell:
    style = layout.Style(2, in_bytes=test.endswith("RR"))
    cell = Cell(f"{test} -f {unit}", test, counted(test), style=style, unit=unit,
                specific=KINDS[test].specific, shown={"unit": UNITS[unit]})
    return cell._replace(length=1) if test == "UDP_STREAM" else cell


def byte_counts(test: str, count: int, sent: int, *more: str, back: int = 0) -> Cell:
    """Every byte sent by one end is received by the other."""
    names = ("LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD", "REMOTE_BYTES_SENT", "LOCAL_BYTES_RECVD")
    shown = dict(zip(names, (sent, sent, back, back)))
    return Cell(f"{test} -k bytes", test, -count, options=("-P", "0"), shown=shown,
                specific=(*more, "-k", ",".join(names)), lines=tuple(f"{n}=%({n})d" for n in names))


def options() -> List[Cell]:
    """Single options. Linux doubles a requested socket size."""
    sizes = ("-s", "20000,30000", "-S", "40000,50000")
    doubled = {"send_buf": 40000, "recv_buf": 60000, "far_send_buf": 80000, "far_recv_buf": 100000}
    nodelay = {"rfam": "AF_INET : nodelay"}
    return [
        *(option(test, *sizes, **doubled) for test in ("TCP_RR", "TCP_CRR", "TCP_CC", "UDP_RR")),
        option("TCP_STREAM", *sizes, send_buf=40000, recv_buf=100000),
        option("TCP_MAERTS", *sizes, send_buf=80000, recv_buf=60000),
        option("TCP_SENDFILE", *sizes, send_buf=40000, recv_buf=100000),
        option("UDP_STREAM", *sizes, "-m", "512", length=-16384, send_buf=40000, recv_buf=100000),
        option("TCP_STREAM", "-m", "1000", send_size=1000),
        option("TCP_STREAM", "-M", "2000", most_per_recv=2000),
        option("TCP_MAERTS", "-m", ",3000", send_size=3000),
        option("TCP_MAERTS", "-M", ",2000", most_per_recv=2000),
        option("TCP_SENDFILE", "-m", "1000", send_size=1000),
        option("UDP_STREAM", "-m", "512", "-R", "1", length=-32768, send_size=512),
        *(option(test, "-r", "100,200", request=100, response=200)
          for test in ("TCP_RR", "TCP_CRR", "TCP_CC", "UDP_RR")),
        *(on_ports(test) for test in ("TCP_RR", "TCP_STREAM", "UDP_STREAM", "UDP_RR")),
        *(option(test, "-D", **nodelay) for test in ("TCP_RR", "TCP_STREAM", "TCP_SENDFILE")),
        *(option(test, "-R", "1") for test in ("TCP_STREAM", "UDP_RR")),
        *(option(test, "-b", "4", length=1, burst=4) for test in ("TCP_RR", "UDP_RR")),
        option("TCP_RR", "-H", "127.0.0.2", "-L", "127.0.0.3", lname="127.0.0.3",
               rname="127.0.0.2"),
        *(option(test, "-H", "127.0.0.1/8", *KINDS[test].specific, rname="127.0.0.1")
          for test in ("TCP_CRR", "TCP_MAERTS", "UDP_RR")),
        globally("TCP_RR", "-L", "127.0.0.2", lname="127.0.0.2", rname="127.0.0.1"),
        globally("UDP_RR", "-L", "127.0.0.2", lname="127.0.0.2", rname="127.0.0.1"),
        *(globally(test, "-T", "0,1", tail=" : cpu bind") for test in ("TCP_RR", "TCP_MAERTS")),
        byte_counts("TCP_STREAM", 4_096_000, 4_096_000, "-m", "16384"),
        byte_counts("UDP_STREAM", 65536, 65536, "-m", "1024"),
        *(byte_counts(test, 200, 20_000, "-r", "100,300", back=60_000)
          for test in ("TCP_RR", "TCP_CRR", "UDP_RR")),
        *(in_unit("TCP_STREAM", unit) for unit in UNITS),
        *(in_unit(test, unit) for test in ("TCP_RR", "UDP_RR", "UDP_STREAM") for unit in "Km"),
    ]


# ---- the suite ----------------------------------------------------------------------------------

KNOWN = "known: "
AGAIN = 4             # times that a cell with the real program may be repeated
MOST_AGAIN = 0.25     # of the cells of a column
Verdicts = Dict[Tuple[str, Pairing], str]


class Repeats:
    """Cells that were repeated, as the real program has races of its own. Those with our programs only are never
    repeated. The number is reported."""

    def __init__(self) -> None:
        self.seen: "List[Tuple[str, Pairing, str]]" = []

    def verdict(self, bed: Bed, pairing: Pairing, cell: Cell) -> str:
        text = verdict(bed, pairing, cell)
        for _ in range(AGAIN if "real" in pairing else 0):
            if passes(text):
                break
            self.seen.append((cell.row, pairing, text))
            text = verdict(bed, pairing, cell)
        return text

    def tell(self, report: lib.Report, cells: int) -> None:
        for row, pairing, text in self.seen:
            print(f"again {pairing}: {row}  {text}", flush=True)
        for pairing in sorted({pairing for _, pairing, _ in self.seen}):
            again = len({row for row, p, _ in self.seen if p == pairing})
            report.check(f"{pairing}: repeats", again <= max(3, cells * MOST_AGAIN),
                         f"{again} of {cells} cells were run again")


def passes(text: str) -> bool:
    return text in ("ok", "skipped") or text.startswith(KNOWN)


def verdict(bed: Bed, pairing: Pairing, cell: Cell) -> str:
    if not bed.offers(pairing):
        return "skipped"
    known = cell.known.get(str(pairing))
    try:
        check_cell(bed, pairing, cell)
    except (Wrong, layout.Misfit) as fault:
        if known and known.says and re.search(known.says, str(fault)):
            return f"{KNOWN}{known.why}"
        return str(fault)
    except Exception as fault:  # the output could not be parsed
        return f"{type(fault).__name__}: {fault}"
    return f"{KNOWN}{known.why}" if known else "ok"  # a race in the peer may spare a run


def run_cells(bed: Bed, cells: List[Cell], pairings: "List[Pairing]", at_once: int,
              repeats: Repeats) -> Verdicts:
    """Run cells in parallel, but never two of the same row, as they may use the same ports."""
    def row(cell: Cell) -> Verdicts:
        return {(cell.row, pairing): repeats.verdict(bed, pairing, cell) for pairing in pairings}

    verdicts: Verdicts = {}
    with ThreadPoolExecutor(at_once) as pool:
        for part in pool.map(row, cells):
            verdicts.update(part)
    return verdicts


def print_table(verdicts: Verdicts, pairings: "List[Pairing]") -> None:
    rows = list(dict.fromkeys(row for row, _ in verdicts))
    wide = max(map(len, rows))
    print("\n" + " " * wide, *(f"{str(p):12}" for p in pairings), sep="  ")
    for row in rows:
        texts = (verdicts[row, p] for p in pairings)
        print(f"{row:{wide}}", *(f"{t[:60]:12}" for t in texts), sep="  ")
    print(flush=True)


def tell(report: lib.Report, verdicts: Verdicts, pairings: "List[Pairing]") -> None:
    """A line for each failed cell and for each column, then a table."""
    for (row, pairing), text in verdicts.items():
        if not passes(text):
            report.check(f"{pairing}: {row}", False, text)
    for pairing in pairings:
        column = [text for (_, p), text in verdicts.items() if p == pairing]
        known = sum(text.startswith(KNOWN) for text in column)
        good = column.count("ok") + known
        if "skipped" not in column:
            more = f", {known} with what is known of the real peer" if known else ""
            report.check(str(pairing), good == len(column), f"{good} of {len(column)} cells{more}")
    print_table(verdicts, pairings)


def find_real(report: lib.Report) -> Optional[Path]:
    if lib.QUICK:
        return None
    try:
        return lib.real_netperf()
    except lib.Skipped as why:
        print(f"SKIP: real netperf: {why}", flush=True)
        report.skipped += len([p for p in PAIRINGS if "real" in p])
        return None


def run_table(report: lib.Report, cells: List[Cell], at_once: int = AT_ONCE) -> None:
    pairings = [p for p in PAIRINGS if not lib.QUICK or "real" not in p]
    lib.watch_wakes()
    with Bed(find_real(report)) as bed:
        repeats = Repeats()
        tell(report, run_cells(bed, cells, pairings, at_once, repeats), pairings)
        repeats.tell(report, len(cells))


def suite(report: lib.Report) -> None:
    run_table(report, matrix() + options() + styles())


if __name__ == "__main__":
    lib.main(suite)
