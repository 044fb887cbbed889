"""Shows documents of netperf --json as a table, figures, Prometheus text or evidence, and several of them merged."""

import collections
import contextlib
import datetime
import math
import operator
import re
import sys
import textwrap
from fractions import Fraction
from typing import Any, Callable, Counter, Dict, Iterable, Iterator, List, Sequence, Tuple

from netkit import documents, files, tables
from netkit.results import ResultsError, is_number, within
from netkit.units import printable

Document = Dict[str, Any]
Row = Tuple[str, str]
NEVER = 2 ** 47 - 1     # ns: the top of a histogram, which holds transactions that never ended
SHARES = ("50", "90", "99", "99.9")
NAMED = re.compile(r"(|CONNECT_|IDLE_|LOADED_)(?:P(\d{1,2}(?:\.\d{1,6})?)|(MIN|MAX))(?:_LATENCY)?")
LABEL, LINE = 16, 79
QUOTED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})      # in Prometheus's text format


def clean(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [clean(one) for one in value]
    return {clean(name): clean(one) for name, one in value.items()} if isinstance(value, dict) else value


def read(path: str) -> "List[Document]":
    """The documents in a file; "-" is stdin. Raises ResultsError."""
    name = "standard input" if path == "-" else path
    with files.raising(ResultsError, path), contextlib.nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file:
        data = file.read()
    found = [clean(one) for one in documents.objects(data.decode("utf-8", "replace"), name)]
    for one in found:
        if not re.fullmatch(r"plumbline-netperf/[1-9]\d*", str(one.get("schema"))) or not isinstance(one.get("iterations"), list):
            raise ResultsError(f"{name}: not a document of a run by netperf --json")
        if str(one["schema"]).endswith("/1") and isinstance(one.get("final"), dict):    # this schema had no null
            one["final"] = {key: None if value == "" or is_number(value) and value < 0 else value for key, value in one["final"].items()}
    if not found:
        raise ResultsError(f"{name}: empty: no document of netperf in it")
    return found


class Times:
    """The histograms of several documents as one, in ns."""

    def __init__(self, parts: "Iterable[Any]") -> None:
        told = [one for one in parts if one]
        self.cells: "Counter[int]" = collections.Counter()
        for one in told:
            for bottom, count in one["cells"]:
                self.cells[operator.index(bottom)] += operator.index(count)
        self.count, self.sum = sum(self.cells.values()), sum(one["sum"] for one in told)
        self.least, self.most = (pick((one[name] for one in told), default=0) for pick, name in ((min, "min"), (max, "max")))

    def at(self, percent: str) -> float:
        """A percentile in seconds: the upper bound of its bucket."""
        left = math.ceil(Fraction(percent) * self.count / 100)
        for bottom in sorted(self.cells):
            left -= self.cells[bottom]
            if left <= 0:
                break
        width = 1 << max(0, bottom.bit_length() - 11)
        return seconds(min(max(bottom + width - 1, self.least), self.most))

    def known(self, percent: str) -> bool:
        """Whether the 95 % interval of the percentile is within the samples."""
        share = float(percent) / 100
        return max(share, 1 - share) ** self.count <= 0.025

    def mean(self) -> float:
        return math.inf if self.most >= NEVER else self.sum / self.count / 1e9

    @staticmethod
    def of(document: Document, which: str = "") -> "Times":
        if which == "CONNECT_":
            return Times([within(document["iterations"][-1], "ramp", "connect")] if document["iterations"] else [])
        if which:
            return Times([within(document, "beside", which[:-1].lower())])
        return Times(one.get("latency") for one in document["iterations"])


def seconds(ns: float) -> float:
    return math.inf if ns >= NEVER else ns / 1e9


def figure(document: Document, name: str) -> Any:
    """A figure by netperf's name; None if not measured. Percentiles need not be those printed; may be infinite."""
    value, percentile = (document.get("final") or {}).get(name), NAMED.fullmatch(name)
    if value is None and percentile:
        times = Times.of(document, percentile[1])
        if times.count:
            ends = {"MIN": seconds(times.least), "MAX": seconds(times.most)}
            value = 1e6 * (ends[percentile[3]] if percentile[3] else times.at(percentile[2]))
    return value


def shown(value: Any) -> str:
    return "" if value is None else f"{value:.12g}" if isinstance(value, float) else str(value)


def word(document: Document, name: str) -> str:
    """As netperf prints it, apart from the number of digits; empty where netperf prints -1."""
    value = figure(document, name)
    return f"{value}/s" if name == "THROUGHPUT_UNITS" and value else shown(value)


def names_of(document: Document, wanted: str) -> "List[str]":
    """The names that match `wanted`; a document has no names of what was not measured."""
    if wanted.lower() == "all":
        return list(document.get("final") or {})
    return [name.strip().upper() for name in re.split("[,;]", wanted) if name.strip()]


def keyval(document: Document, wanted: str) -> str:
    return "".join(f"{name}={word(document, name)}\n" for name in names_of(document, wanted))


def rows_of(found: "Sequence[Document]", wanted: str) -> str:
    if not found:
        return ""
    names = list(dict.fromkeys(name for one in found for name in names_of(one, wanted)))
    return tables.csv_text([names, *([word(one, name) for name in names] for one in found)])


def prometheus(found: "Sequence[Document]") -> str:
    """A gauge for each known number, and a summary of the latencies in seconds."""
    lines: "Dict[str, List[str]]" = {}
    several: "List[Dict[str, Any]]" = []

    def put(name: str, kind: str, words: str, labels: "Dict[str, Any]", value: float, end: str = "") -> None:
        told = ",".join(f'{key}="{str(text).translate(QUOTED)}"' for key, text in labels.items() if text is not None)
        number = ("+Inf" if value > 0 else "-Inf") if math.isinf(value) else f"{value:.17g}"
        lines.setdefault(name, [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]).append(f"{name}{end}{{{told}}} {number}")

    for one in found:
        test, times = one.get("test") or {}, Times.of(one)
        labels = {name: test.get(key) for name, key in (("test", "name"), ("host", "host"), ("protocol", "protocol"), ("brand", "brand"))}
        if labels in several:
            raise ResultsError(f"two runs of {labels['test']} to {labels['host']} have the same labels, which Prometheus refuses (netperf -B "
                               "tells them apart)")
        several.append(labels)
        put("netperf_complete", "gauge", "1: the run is complete; 0: a part of it, or nothing, was measured", labels,
            float(one.get("result") == "complete"))
        unit = within(one, "final", "THROUGHPUT_UNITS")
        for name in one.get("final") or {}:
            value = figure(one, name)
            if is_number(value) and value >= 0:
                of_bytes = "10^6bits" if unit == "Trans" else unit
                rate = unit if name == "THROUGHPUT" else of_bytes if re.fullmatch("(LOCAL|REMOTE)_(SEND|RECV)_THROUGHPUT", name) else None
                put(f"netperf_{name.lower()}", "gauge", f"{name} of netperf -- -k", {**labels, "unit": rate and f"{rate}/s"}, value)
        if times.count:
            of = "netperf_latency_seconds", "summary", "Times of transactions, or of calls in streams"
            for percent in SHARES:
                put(*of, {**labels, "quantile": f"{float(percent) / 100:g}"}, times.at(percent))
            put(*of, labels, math.inf if times.most >= NEVER else times.sum / 1e9, "_sum")
            put(*of, labels, times.count, "_count")
    return "".join(f"{line}\n" for part in lines.values() for line in part)


def si(value: float, digits: int, unit: str) -> str:
    """With an SI prefix: "9.412 Gbit/s", "12.1 us"."""
    if not math.isfinite(value):
        return "never"
    power = 0 if not value else min(12, max(-9, 3 * math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))) / 3)))
    scaled = value
    for _ in range(abs(power) // 3):    # rounded as netperf --human does
        scaled = scaled / 1000 if power > 0 else scaled * 1000
    rounded = float(f"{scaled:.{digits - 1}e}")
    before = 1 if rounded < 10 else 2 if rounded < 100 else 3
    return f"{scaled:.{max(0, digits - before)}f} {dict(zip(range(-9, 13, 3), ('n', 'u', 'm', '', 'k', 'M', 'G', 'T')))[power]}{unit}"


def rate_of(document: Document, value: float, transactions: bool) -> str:
    unit = str(within(document, "final", "THROUGHPUT_UNITS"))
    bits = re.fullmatch(r"10\^(\d)bits|([KMG]?)Bytes", unit)
    if not bits or transactions:
        return f"{value:.{0 if value >= 100 else 2}f}/s"
    return si(value * (10 ** int(bits[1]) if bits[1] else 8 * 1024 ** " KMG".index(bits[2] or " ")), 4, "bit/s")


class Table:

    def __init__(self, document: Document) -> None:
        self.document, self.final = document, document["final"]
        self.of: "Callable[[str], Any]" = self.final.get
        self.pattern = within(document, "test", "pattern")
        self.counts = self.of("THROUGHPUT_UNITS") == "Trans" or self.pattern == "cc"     # connections are not bytes
        out, back = (self.of(f"LOCAL_{way}_THROUGHPUT") or 0 for way in ("SEND", "RECV"))
        self.datagrams = str(self.of("PROTOCOL")).upper().startswith("UDP")
        self.both = not self.counts and self.of("TRANSACTION_RATE") is None and out > 0 and back > 0

    def rate(self, name: str) -> str:
        return rate_of(self.document, self.of(name) or 0.0, self.counts)

    def time(self, name: str, unit: float) -> str:
        value = figure(self.document, name)
        return "not known" if value is None else si(value * unit, 3, "s")

    def rows(self) -> "Iterator[Row]":
        yield "Test", self.test()
        yield from self.ends()
        yield ("Segment size", f"{self.of('TRANSPORT_MSS')} bytes") if self.pattern == "mss" else (
            "Transactions" if self.counts else "Throughput", self.throughput())
        yield "Flows", self.flows()
        yield "Requests" if self.of("DUE_OPERATIONS") is not None else "Messages", self.open_loop()
        yield "Loss", self.loss()
        yield "Fragments", str(self.of("PROTOCOL_DETAIL") or "") if self.datagrams else ""
        yield from self.latency()
        yield "Beside", self.beside()
        yield "Processors", self.of_ends("{:.1f} %", "CPU_UTIL", ", of all processors")
        yield "Retransmitted", self.of_ends("{}", "TRANSPORT_RETRANS")
        yield "Undisturbed", self.undisturbed()
        for label, name in (("Limit", "sentence"), ("Calls", "calls"), ("Doubts", "doubts"), ("Ceiling", "ceiling")):
            yield label, str(within(self.document, "explanation", "values", f"explain.{name}") or "")

    def test(self) -> str:
        engine, repeated = self.of("LOCAL_ENGINE"), len(self.document["iterations"])
        return (f"{within(self.document, 'test', 'name')}, {self.of('ELAPSED_TIME') or 0:.2f} s"
                + (f" in each of {repeated} iterations" if repeated > 1 else "")
                + (f", engine {engine}" if engine not in (None, "sync") else ""))

    def ends(self) -> "Iterator[Row]":
        way = str(self.of("DIRECTION") or "")
        does = ("", "") if self.counts or self.both or "|" in way or not way else (
            ", sends", ", receives") if way.lower() == "send" else (", receives", ", sends")
        here, there = (str(within(self.document, "parameters", "granted", end, "address") or "") for end in ("near", "far"))
        host = str(within(self.document, "test", "host") or "")
        named = there or host
        if there and host and not there.startswith(f"{host} "):
            named += f" ({host})"
        yield "Local end", here and here + does[0]
        yield "Remote end", named and named + does[1]

    def throughput(self) -> str:
        mean, wide = self.of("THROUGHPUT"), self.of("THROUGHPUT_CONFID")
        said, asked = rate_of(self.document, mean, self.counts), within(self.document, "test", "iterations", "confidence_width")
        if wide is not None:
            half = f"{wide / 2:.2g}" if wide < 199 else f"{wide / 2:.0f}"
            said += f" +- {rate_of(self.document, mean * wide / 200, self.counts)} ({half} %) at {self.of('CONFIDENCE_LEVEL')} % confidence"
            said += ", less sure than was asked for" if asked and wide > asked else ""
        if self.both and self.datagrams:
            said += (f"; {self.rate('REMOTE_RECV_THROUGHPUT')} of {self.rate('LOCAL_SEND_THROUGHPUT')} arrived there, "
                     f"{self.rate('LOCAL_RECV_THROUGHPUT')} of {self.rate('REMOTE_SEND_THROUGHPUT')} here")
        elif self.both:
            said += f"; {self.rate('LOCAL_SEND_THROUGHPUT')} sent, {self.rate('LOCAL_RECV_THROUGHPUT')} received"
        return said

    def flows(self) -> str:
        if (self.of("FLOWS") or 1) < 2 or self.of("JAIN_INDEX") is None:
            return ""
        far = self.of("REMOTE_THREADS")
        spread = "" if self.both and self.datagrams else (
            f", least {self.rate('MIN_FLOW_THROUGHPUT')}, most {self.rate('MAX_FLOW_THROUGHPUT')}, Jain's index {self.of('JAIN_INDEX'):.3f}")
        return f"{self.of('FLOWS')}{spread}, threads {self.of('THREADS')} local" + (f", {far} remote" if far is not None else "")

    def open_loop(self) -> str:
        if self.of("ASKED_RATE") is None:
            return ""
        said = " of ".join(rate_of(self.document, self.of(name) or 0.0, True) for name in ("SENT_RATE", "ASKED_RATE")) + " asked for"
        if self.of("DUE_OPERATIONS") is None:
            return said
        said += (f"; of {self.of('DUE_OPERATIONS')} due {self.of('SENT_OPERATIONS')} sent ({self.of('LATE_OPERATIONS')} late), "
                 f"{self.of('UNANSWERED_OPERATIONS')} not answered; lateness P99 {self.time('P99_LATENESS', 1e-6)}, "
                 f"max {self.time('MAX_LATENESS', 1e-6)}")
        if (p_value := self.of("ARRIVALS_P_VALUE")) is not None and p_value < 0.001:
            said += "; arrivals were not Poisson (Anderson-Darling p < 0.001)"
        if self.of("OUTAGE_BEGIN") is not None:
            said += f"; longest outage {self.time('OUTAGE', 1e-3)} at {self.time('OUTAGE_BEGIN', 1)}"
        return said + ("; the load generator was the bottleneck" if self.of("GENERATOR_LIMITS") not in (None, "no") else "")

    def loss(self) -> str:
        def share(lost: float, of_all: float, what: str) -> str:
            return f"{lost} of {of_all} {what} ({100 * lost / of_all:.3g} %)" if of_all else ""

        lost, unique, sent, arrived = map(self.of, ("LOST_DATAGRAMS", "UNIQUE_DATAGRAMS", "LOCAL_SEND_CALLS", "REMOTE_RECV_CALLS"))
        if lost is not None and unique is not None:
            return share(lost, lost + unique, "datagrams")
        if not self.datagrams:
            return ""
        if self.of("TRANSACTION_RATE") is not None:
            return share(self.of("LOST_REQUESTS") or 0, sent or 0, "requests")
        if arrived is None or str(self.of("DIRECTION")).lower() != "send":
            return ""
        back = self.of("REMOTE_SEND_CALLS")     # the other direction of --both
        if back is not None:
            sent, arrived = sent + back, arrived + (self.of("LOCAL_RECV_CALLS") or 0)
        return share(max(0, sent - arrived), sent, "datagrams")

    def latency(self) -> "Iterator[Row]":
        times = Times.of(self.document)
        if times.count:
            mean = f"mean {si(times.mean(), 3, 's')}, " if times.most < NEVER else ""
            what = within(self.document, "latency", "of") or within(self.document, "display", "histogram_of")
            yield "Latency", (f"min {si(seconds(times.least), 3, 's')}, {mean}max {si(seconds(times.most), 3, 's')} of {times.count} times"
                              + (f" ({what})" if what else ""))
            yield "", percentiles(times)

    def beside(self) -> str:
        parts = [f"{name.lower()} P50 {self.time(f'{name}_P50_LATENCY', 1e-6)}, P99 {self.time(f'{name}_P99_LATENCY', 1e-6)}, "
                 f"{self.of(f'{name}_RPM') or 0:.0f} round trips a minute" for name in ("IDLE", "LOADED")
                 if figure(self.document, f"{name}_P50_LATENCY") is not None]
        died = self.of("LOAD_DIED")
        return "; ".join([*parts, *([died] if died not in (None, "", "no") else [])])

    def of_ends(self, form: str, name: str, end: str = "") -> str:
        told = [(self.of(f"{where.upper()}_{name}"), where) for where in ("local", "remote")]
        return (", ".join(f"{form.format(value)} {where}" for value, where in told if value is not None)
                + (end if any(value is not None for value, _ in told) else ""))

    def undisturbed(self) -> str:
        share = self.of("DISTURBED_SHARE")
        if share is None:
            return ""
        rate = f", with {self.rate('CLEAN_THROUGHPUT')}" if (
            share > 0 and self.of("CLEAN_THROUGHPUT") is not None and (self.of("CLEAN_SECONDS") or 0) >= 0.1) else ""
        why = f" (disturbed, in seconds: {self.of('DISTURBED_REASONS')})" if share > 0 and self.of("DISTURBED_REASONS") else ""
        others = ", other programs aside: they are not told from the other session" if self.both else ""
        return f"{100 * (1 - share):.1f} % of the time{others}{rate}{why}"


def percentiles(times: Times) -> str:
    return ", ".join(f"P{percent} {si(times.at(percent), 3, 's') if times.known(percent) else 'not known (too few)'}" for percent in SHARES)


def table(document: Document) -> str:
    return "".join(textwrap.fill(f"{label:{LABEL}}{words}", LINE, subsequent_indent=" " * LABEL, break_on_hyphens=False,
                                 drop_whitespace=True) + "\n" for label, words in Table(document).rows() if words)


def evidence(document: Document, prefix: str) -> str:
    """Evidence of both ends from the last iteration, for names with this prefix, and why any could not be read."""
    lines: "List[str]" = []
    for end in ("near", "far"):
        known = (document["iterations"][-1].get(end) if document["iterations"] else None) or {}
        values = {**known, **{name: f"unread: {why}" for name, why in (known.get("unread") or {}).items()}}
        lines += [f"{end}.{name}={shown(value)}\n" for name, value in sorted(values.items())
                  if name.startswith(prefix) and not isinstance(value, dict)]
    return "".join(lines)


def merged(named: "Sequence[Tuple[str, Document]]") -> "Tuple[str, List[str]]":
    """A row for each run, the sum of rates, and percentiles of all latencies together. Returns the text and notes."""
    rows, begins, ends, notes, first = [], [], [], [], ("", "")
    for name, one in named:
        if not one.get("final"):
            raise ResultsError(f"{name}: the run has no result")
        kind = str(within(one, "test", "name")), str(one["final"]["THROUGHPUT_UNITS"])
        first = first if rows else kind
        if kind != first:
            raise ResultsError(f"{name}: a {kind[0]} in {kind[1]}, and the first one a {first[0]} in {first[1]} (merge runs of one test)")
        begin, last = (datetime.datetime.fromisoformat(one["iterations"][at]["started"].replace("Z", "+00:00")).timestamp() for at in (0, -1))
        begins.append(begin)
        ends.append(last + one["iterations"][-1]["elapsed"])
        rows.append((name, one["final"]["THROUGHPUT"], ends[-1] - begin))
    together = max(0.0, min(ends) - max(begins))
    rows.append(("together", sum(rate for _, rate, _ in rows), together))
    made = tables.Block(first[0], ["document", f"{first[1]}/s", "seconds"], [[name, f"{rate:.2f}", f"{time:.2f}"] for name, rate, time in rows])
    each = [Times.of(one) for _, one in named]
    without = sum(not one.count for one in each)
    if not without:
        times = Times(within(part, "latency") for _, one in named for part in one["iterations"])
        made.notes.append(f"Latency of {times.count} times: min {si(seconds(times.least), 3, 's')}, {percentiles(times)}, "
                          f"max {si(seconds(times.most), 3, 's')}")
    elif without < len(each):
        notes.append(f"{without} of {len(each)} documents have no latencies, so that all of them together have no percentiles")
    if together < 0.9 * max(time for _, _, time in rows[:-1]):
        notes.append(f"they ran together for {together:.2f} of {max(time for _, _, time in rows[:-1]):.2f} s: their sum is no rate of any time")
    return tables.write([made], "text"), notes
