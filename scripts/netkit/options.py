"""The netperf command for a point of a sweep: a table of names and options, as in netsweep(1), which a test checks."""

import math
import os
import re
import shlex
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional

from netkit import UsageError, results, units

Known = Dict[str, Any]      # axes and constants of a point; None: netperf's default

IP_HEADER = {4: 20, 6: 40}
UDP_HEADER = 8
CONNECTIONS = ("TCP_CRR", "TCP_CC")
TRANSACTIONS = ("TCP_RR", "UDP_RR") + CONNECTIONS
STREAMS = ("TCP_STREAM", "TCP_MAERTS", "UDP_STREAM", "TCP_SENDFILE")
CLASSIC = ("TCP_SENDFILE",)     # without -k: its table is parsed instead
TESTS = STREAMS + TRANSACTIONS + ("OMNI",)
MOST_FLOWS = 10000
AT_MOST = 4             # times the requested clean seconds, after which netperf ends anyway
FIGURES = {     # figures to ask for if these names have a value
    "clean": ["CLEAN_SECONDS", "CLEAN_THROUGHPUT", "DISTURBED_SHARE", "DISTURBED_REASONS"],
    "asked_rate": ["ASKED_RATE", "SENT_RATE", "DUE_OPERATIONS", "SENT_OPERATIONS", "UNANSWERED_OPERATIONS", "LATE_OPERATIONS",
                   "P99_LATENESS", "MAX_LATENESS", "GENERATOR_LIMITS"],
    "beside": ["IDLE_P50_LATENCY", "IDLE_P99_LATENCY", "IDLE_RPM", "LOADED_P50_LATENCY", "LOADED_P99_LATENCY", "LOADED_RPM",
               "LOADED_UNANSWERED", "LOAD_LATENCY", "RESPONSIVENESS", "LOAD_DIED"]}
FLOW_FIGURES = ["FLOWS", "THREADS", "MIN_FLOW_THROUGHPUT", "MAX_FLOW_THROUGHPUT", "JAIN_INDEX"]


class OptionError(UsageError):
    """A value that its name can't have; one line."""


@dataclass(frozen=True)
class Name:
    """A name that axes and constants may have; netsweep(1) documents them."""
    name: str
    make: "Optional[Callable[[Any, Known], List[str]]]" = None      # None: netsweep itself handles it
    test: bool = False          # whether it is a test-specific option, after the --
    unit: str = ""
    commas: bool = False        # whether a single value may contain commas


def word(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        raise OptionError(f"{value!r} is not a value for it".replace("True", "true")
                          .replace("False", "false"))
    return str(value)


def plain(*letters: str) -> "Callable[[Any, Known], List[str]]":
    """Pass the value unchanged with each of these options."""
    def make(value: Any, _known: Known) -> "List[str]":
        return [part for letter in letters for part in (letter, word(value))]
    return make


def switch(*letters: str) -> "Callable[[Any, Known], List[str]]":
    def make(value: Any, _known: Known) -> "List[str]":
        if not isinstance(value, bool):
            raise OptionError(f"{value!r} is neither true nor false")
        return list(letters) if value else []
    return make


def words(value: Any, known: Known) -> "List[str]":
    """A string of options. Names in braces are replaced after splitting, so that a value stays one word."""
    try:
        parts = shlex.split(word(value))
    except ValueError as fault:
        raise OptionError(f"{value!r}: {fault}") from None

    def value(found: "re.Match[str]") -> str:
        if known.get(found[1]) is None:
            raise OptionError(f"{{{found[1]}}}: no axis or constant of that name has a value here")
        return word(known[found[1]])
    return [re.sub(r"\{([A-Za-z_]\w*)\}", value, part) for part in parts]


def hosts(text: str) -> "List[str]":
    """Split "A,B" or "A,inet6;B" into hosts; a family after a comma belongs to the host before it."""
    return re.split(r";|,(?!(?:[046]|inet[46]?|unspec)(?:[,;]|$))", text)


def length_option(value: Any, known: Known) -> "List[str]":
    """The option for the length; none with "clean", which determines it."""
    if known.get("clean") is not None:
        if units.seconds(value) is None:
            raise OptionError(f"{value!r} is a count, but clean is in seconds: give only one")
        return []
    if isinstance(value, float) and value == int(value):
        value = int(value)
    if isinstance(value, float) and value < 0.001:
        raise OptionError(f"{value!r}: a count is a whole number, and a time at least 0.001 s")
    return ["-l", word(value)]


def clean_option(value: Any, known: Known) -> "List[str]":
    also = next((name for name in ("confidence", "iterations") if known.get(name) is not None), "")
    if also:
        raise OptionError(f"{also} says when to repeat, too: give only one")
    return ["--clean", str(count(value, known))]


def at_most_option(value: Any, known: Known) -> "List[str]":
    if count(value, known) < (known.get("clean") or math.inf):
        raise OptionError(f"{value!r} is less than clean, or there is no clean that it goes with")
    return ["--at-most", str(value)]


def family_option(value: Any, _known: Known) -> "List[str]":
    if value not in (4, 6):
        raise OptionError(f"{value!r}: neither 4 nor 6")
    return [f"-{value}"]


def cpu_option(value: Any, _known: Known) -> "List[str]":
    """"apart" puts the ends on different processors if the machine has two."""
    if value != "apart":
        return ["-T", word(value)]
    mine = sorted(os.sched_getaffinity(0))
    return ["-T", f"{mine[0]},{mine[1]}"] if len(mine) > 1 else []


def test_option(value: Any, _known: Known) -> "List[str]":
    if test_name({"test": value}) not in TESTS:
        raise OptionError(f"{value!r}: not a test whose results netsweep can read "
                          f"(try {', '.join(TESTS)})")
    return ["-t", test_name({"test": value})]


def size_option(value: Any, known: Known) -> "List[str]":
    test = test_name(known)
    if value == "full":
        return ["-m", str(full_datagram(known))] if test == "UDP_STREAM" else []
    if test in TRANSACTIONS:
        return ["-r", f"{word(value)},{word(value)}"] if test != "TCP_CC" else []
    return ["-m", word(value)]


def full_datagram(known: Known) -> int:
    """The payload of a datagram that fills a packet."""
    try:
        return int(known["mtu"]) - IP_HEADER[family(known)] - UDP_HEADER
    except (KeyError, TypeError, ValueError):
        raise OptionError("\"full\" needs an mtu among the axes or constants") from None


def request_option(value: Any, known: Known) -> "List[str]":
    """A single -r for request and response, whichever are given."""
    response = known.get("response")
    return ["-r", f"{word(value)},{word(1 if response is None else response)}"]


def congestion_option(value: Any, known: Known) -> "List[str]":
    """None in our lab, where routes set it: with evidence, a session may not use a restricted congestion control."""
    return [] if test_name(known).startswith("UDP") or known.get("lab") else ["-K", word(value)]


def count(value: Any, known: Known) -> int:
    """A number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"{value!r} is not a number from 1")
    return value


def flows_option(value: Any, known: Known) -> "List[str]":
    """No option for one flow, so that any netperf works."""
    if count(value, known) > MOST_FLOWS:
        raise OptionError(f"{value} is more than the {MOST_FLOWS} that a netperf has")
    return ["--flows", str(value)] if value > 1 else []


def threads_option(value: Any, known: Known) -> "List[str]":
    if not re.fullmatch(r"[1-9][0-9]*(,[1-9][0-9]*)?", word(value)):
        raise OptionError(f"{value!r} is neither a number from 1 nor two, as \"2,1\"")
    most, flows = max(map(int, str(value).split(","))), known.get("flows") or 1
    if most > flows:
        raise OptionError(f"{value} with flows = {flows}: a thread drives a flow at least "
                          "(leave such points out by [[skip]])")
    return ["--threads", str(value)] if most > 1 else []


def engine_option(value: Any, _known: Known) -> "List[str]":
    if not re.fullmatch(r"\w+(/\w+)?", word(value)):
        raise OptionError(f"{value!r} is neither an engine nor two, as \"sync/batch\"")
    return ["--engine", str(value).replace("/", ",")]


def test_name(known: Known) -> str:
    return str(known.get("test") or "TCP_STREAM").upper()


def family(known: Known) -> int:
    return int(known.get("family") or (6 if ":" in str(known.get("host") or "") else 4))


BYTES, SECONDS = "bytes", "s"
NAMES = (
    Name("host", plain("-H"), commas=True),
    Name("port", plain("-p"), commas=True),
    Name("family", family_option),
    Name("test", test_option),
    Name("length", length_option, unit=SECONDS),
    Name("clean", clean_option, unit=SECONDS),
    Name("at_most", at_most_option, unit=SECONDS),
    Name("cpu", cpu_option, commas=True),
    Name("cpu_figures", switch("-c", "-C")),
    Name("interval", plain("-D"), unit=SECONDS, commas=True),
    Name("confidence", plain("-I"), commas=True),
    Name("iterations", plain("-i"), commas=True),
    Name("fill_file", plain("-F"), commas=True),
    Name("flows", flows_option),
    Name("asked_rate", plain("--rate")),
    Name("arrivals", plain("--arrivals")),
    Name("warm_up", plain("--warm-up")),
    Name("beside", plain("--beside")),
    Name("threads", threads_option, commas=True),
    Name("engine", engine_option),
    Name("evidence"),
    Name("cycles", switch("--cycles")),
    Name("options", words, commas=True),
    Name("buffer", plain("-s", "-S"), test=True, unit=BYTES),
    Name("local_buffer", plain("-s"), test=True, unit=BYTES),
    Name("remote_buffer", plain("-S"), test=True, unit=BYTES),
    Name("size", size_option, test=True, unit=BYTES),
    Name("receive_size", plain("-M"), test=True, unit=BYTES),
    Name("request", request_option, test=True, unit=BYTES),
    Name("response", lambda value, known: [] if known.get("request") is not None else ["-r", f"1,{word(value)}"], test=True,
         unit=BYTES),
    Name("burst", plain("-b"), test=True),
    Name("nodelay", switch("-D"), test=True),
    Name("mss", plain("-G"), test=True, unit=BYTES),
    Name("congestion", congestion_option, test=True),
    Name("test_options", words, test=True, commas=True),
    Name("processes"),
    Name("mtu", unit=BYTES),
    Name("rate", unit="bits/s"),
    Name("delay"),
    Name("timestamps"),
    Name("vlan"),
    Name("framing"),
    Name("lab", commas=True),
    Name("client"),
    Name("server"),
    Name("command", commas=True),
)
BY_NAME = {row.name: row for row in NAMES}


def command(netperf: str, known: Known) -> "List[str]":
    """The netperf command for a point. Raises OptionError."""
    parts: "Dict[bool, List[str]]" = {False: [], True: []}
    for row in NAMES:
        value = known.get(row.name)
        if value is None or row.make is None:
            continue
        try:
            parts[row.test] += row.make(value, known)
        except OptionError as fault:
            raise OptionError(f"{row.name}: {fault}") from None
    if test_name(known) == "UDP_STREAM" and not any(part.startswith("-R") for part in parts[True]):
        parts[True] += ["-R", "1"]
    classic = test_name(known) in CLASSIC
    heads = [] if classic else ["-P", "0"]      # the headers of a table contain its unit
    figures = [] if classic else ["-k", ",".join(selectors(known))]
    return [netperf, *parts[False], *heads, *(["--"] if parts[True] or figures else []),
            *parts[True], *figures]


def selectors(known: Known) -> "List[str]":
    """The figures to ask for. netperf 2.7 knows all but those of several flows, and omits unknown ones."""
    ends = ("LOCAL", "REMOTE")
    wanted = ["THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME", "PROTOCOL", "DIRECTION"]
    if test_name(known) in TRANSACTIONS:
        wanted += ["REQUEST_SIZE", "RESPONSE_SIZE", "TRANSACTION_RATE", "BURST_SIZE", "MIN_LATENCY",
                   "MEAN_LATENCY", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY", "MAX_LATENCY",
                   "STDDEV_LATENCY"]
    else:
        wanted += [f"{end}_{what}" for what in ("SEND_SIZE", "RECV_SIZE", "SEND_THROUGHPUT",
                                                "RECV_THROUGHPUT") for end in ends]
    wanted += ["LSS_SIZE_END", "LSR_SIZE_END", "RSS_SIZE_END", "RSR_SIZE_END"]
    if not test_name(known).startswith("UDP"):
        wanted += ["TRANSPORT_MSS"]
        wanted += [f"{end}_{what}" for what in ("TRANSPORT_RETRANS", "CONG_CONTROL") for end in ends]
    if known.get("cpu_figures"):
        wanted += [f"{end}_{what}" for end in ends for what in (
            "CPU_UTIL", "CPU_PERCENT_USER", "CPU_PERCENT_SYSTEM", "CPU_PERCENT_SWINTR",
            "CPU_PERCENT_IRQ", "CPU_PEAK_UTIL", "CPU_PEAK_ID", "SD")] + ["SD_UNITS"]
    if known.get("confidence") is not None or known.get("iterations") is not None:
        wanted += ["CONFIDENCE_LEVEL", "CONFIDENCE_INTERVAL", "CONFIDENCE_ITERATION",
                   "THROUGHPUT_CONFID", "LOCAL_CPU_CONFID", "REMOTE_CPU_CONFID"]
    if (known.get("flows") or 1) > 1:
        wanted += FLOW_FIGURES
    for name, figures in FIGURES.items():
        wanted += figures if known.get(name) is not None else []
    return wanted


NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
INTERIM = re.compile(r"NETPERF_(INTERIM_RESULT|INTERVAL)\[([0-9]+)\]=(\S+)")
INTERIM_LINE = re.compile(r"Interim result: +([0-9.]+) +\S+ over +([0-9.]+) seconds")
CLASSIC_FIGURES = ("RSR_SIZE", "LSS_SIZE", "LOCAL_SEND_SIZE", "ELAPSED_TIME", "THROUGHPUT",
                   "LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL", "LOCAL_SD", "REMOTE_SD")


def number(text: str) -> Any:
    """A number if the text is one that can have been measured, else the text."""
    found = NUMBER.fullmatch(text)
    if not found or abs(float(text)) > results.MOST_FIGURE:
        return text
    return float(text) if found[1] or found[2] else int(text)


def measured(text: str) -> Any:
    """A number; None if it is negative, with which netperf marks what was not measured."""
    value = number(text)
    return None if isinstance(value, (int, float)) and value < 0 else value


def figures(known: Known, stdout: str) -> "Dict[str, Any]":
    """Parse netperf's output: NAME=value lines, or the table of a test without -k."""
    if test_name(known) in CLASSIC:
        return classic_figures(stdout)
    pairs = re.findall(r"^([A-Z][A-Z0-9_.]*)=(.*)$", stdout, re.MULTILINE)
    return {name: measured(text.strip()) for name, text in pairs if text.strip()}


def classic_figures(stdout: str) -> "Dict[str, Any]":
    rows = [line.split() for line in stdout.splitlines() if line.strip()]
    rows = [row for row in rows if len(row) in (5, 9) and all(map(NUMBER.fullmatch, row))]
    if not rows:
        return {}
    found = dict(zip(CLASSIC_FIGURES, map(measured, rows[-1])))
    unit = re.search(r"(10\^[0-9]+ ?bits|[KMG]?Bytes) */s", stdout)
    if not unit:
        return {}
    return {**found, "THROUGHPUT_UNITS": unit[1].replace(" ", "") + "/s"}


def interim(stdout: str) -> "Optional[List[List[float]]]":
    """Parse interim results: seconds since the start and throughput of each. None if one is not a number."""
    samples: "Dict[str, Dict[str, Any]]" = {}
    for name, index, value in INTERIM.findall(stdout):
        samples.setdefault(index, {})[name] = number(value)
    pairs = [(one["INTERVAL"], one["INTERIM_RESULT"]) for one in samples.values() if len(one) == 2] or [
        (number(seconds), number(rate)) for rate, seconds in INTERIM_LINE.findall(stdout)]
    if any(isinstance(one, str) for pair in pairs for one in pair):
        return None
    since, made = 0.0, []
    for seconds, rate in pairs:
        since += seconds
        made.append([round(since, 3), float(rate)])
    return made


SUMMED = ("THROUGHPUT", "TRANSACTION_RATE", "LOCAL_SEND_THROUGHPUT", "LOCAL_RECV_THROUGHPUT",
          "REMOTE_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT")
COUNTED = ("LOCAL_TRANSPORT_RETRANS", "REMOTE_TRANSPORT_RETRANS",     # in older files, -1 is unknown
           "FLOWS", "THREADS")
LONGEST = ("ELAPSED_TIME", "MAX_LATENCY", "MAX_FLOW_THROUGHPUT")
LEAST = ("MIN_LATENCY", "MIN_FLOW_THROUGHPUT")
UNJOINED = ("JAIN_INDEX",)      # about a netperf's own flows, even if all have the same value


def together(parts: "List[Dict[str, Any]]") -> "Dict[str, Any]":
    """Combine the figures of several simultaneous netperfs. Rates, retransmissions, flows and threads are added up;
    elapsed time is the maximum; minima and maxima are kept; processor use, of the whole machine each time, is
    averaged. Equal figures are kept; those that can't be combined, such as percentiles, are dropped."""
    made: "Dict[str, Any]" = {}
    for name in parts[0]:
        values = [part.get(name) for part in parts]
        if name in UNJOINED or any(value is None for value in values):
            continue
        numbers = all(isinstance(value, (int, float)) for value in values)
        if numbers and (name in SUMMED or name in COUNTED and min(values) >= 0):
            made[name] = round(sum(values), 6)
        elif name in LONGEST and numbers:
            made[name] = max(values)
        elif name in LEAST and numbers:
            made[name] = min(values)
        elif re.fullmatch(r"(LOCAL|REMOTE)_CPU_(UTIL|PERCENT_\w+)|MEAN_LATENCY", name) and numbers:
            made[name] = round(sum(values) / len(values), 6)
        elif all(value == values[0] for value in values):
            made[name] = values[0]
    return made if "FLOWS" in made else {**made, **shares([part["THROUGHPUT"] for part in parts])}


def shares(rates: "List[float]") -> "Dict[str, Any]":
    """Figures about several flows, from processes with one flow each."""
    squares = len(rates) * sum(rate * rate for rate in rates)
    return {"FLOWS": len(rates), "MIN_FLOW_THROUGHPUT": min(rates), "MAX_FLOW_THROUGHPUT": max(rates),
            **({"JAIN_INDEX": round(sum(rates) ** 2 / squares, 6)} if squares else {})}
