"""What else differs between A and B where one is worse: settings, options, counters (named as in doc/evidence.md)."""

import difflib
import importlib
import json
import math
import re
import shlex
import statistics
import warnings
from collections import Counter
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from netkit import machine
from netkit.gate import output
from netkit.gate.model import BETTER, WORSE, A, B, Gate, Slot
from netkit.results import is_figure

MOST_LINES = 10
LEAST_RATIO = 1.03      # smaller differences between counters explain nothing
MOST_ERROR = 0.05       # error probability of all counters together
FEW = 12                # slots of a side, below which ranks cannot be significant

# A single shell, as the host may be remote. What a host lacks prints nothing.
SCRIPT = r"""
exec 2> /dev/null
PATH=$PATH:/usr/sbin:/sbin
echo "@@ host"; echo "kernel:$(uname -srvm)"
echo "boot:$(tr ' ' '\n' < /proc/cmdline | grep -e ^mitigations -e ^isolcpus -e ^nohz -e ^rcu_nocbs -e ^idle -e ^nosmt \
	-e ^irqaffinity -e ^processor -e ^intel_ -e ^amd_ -e ^iommu -e ^pci -e ^threadirqs -e ^preempt -e ^tsc | tr '\n' ' ')"
cd /sys/devices/system/cpu && { echo "@@ cpu"
grep -sH '' online smt/control intel_pstate/no_turbo cpufreq/boost cpuidle/current_governor \
	cpu[0-9]*/cpufreq/scaling_governor cpu[0-9]*/cpufreq/scaling_max_freq
}
cd /proc/sys/net && { echo "@@ sysctl"
grep -sH '' core/* ipv4/tcp_* ipv4/udp_* ipv4/ip_local_port_range | grep -v -e _key: -e tcp_available
}
[ -n "$dev" ] || exit 0
for dev in "$dev" $(cd "/sys/class/net/$dev" && ls -d lower_* | cut -c 7-); do
echo "@@ of $dev"
for table in i k c g l a; do echo "@@ ethtool $table"; ethtool -$table "$dev"; done
echo "@@ ethtool private"; ethtool --show-priv-flags "$dev"
echo "@@ link"; ip -j -d link show dev "$dev"
echo "@@ qdisc"; tc -j qdisc show dev "$dev"
echo "@@ class"; tc -j class show dev "$dev"
cd "/sys/class/net/$dev" || continue
echo "@@ nic"; grep -sH '' speed duplex tx_queue_len gro_flush_timeout napi_defer_hard_irqs threaded \
	queues/*/rps_cpus queues/*/rps_flow_cnt queues/*/xps_cpus
for home in device/driver/module/ device/../driver/module/; do
	cd "/sys/class/net/$dev/$home" && { echo "@@ module"; grep -sH '' version srcversion parameters/*; break; }
done
cd "/sys/class/net/$dev"; echo "@@ irq"
for irq in $(ls device/msi_irqs device/../msi_irqs) $(grep -w -e "$dev" /proc/interrupts | cut -d: -f1); do
	[ -r "/proc/irq/$irq/smp_affinity_list" ] && echo "$irq:$(cat /proc/irq/$irq/smp_affinity_list)"
done
done
"""
ETHTOOL = {"i": "", "k": "offload ", "c": "coalesce ", "g": "ring ", "l": "channels ", "a": "pause ",
           "private": "flag "}
NAMES = {"version": "driver version", "tcp-segmentation-offload": "tso", "generic-segmentation-offload": "gso",
         "generic-receive-offload": "gro", "large-receive-offload": "lro", "rx-checksumming": "rx",
         "tx-checksumming": "tx", "scatter-gather": "sg"}
OF_LINK = ("mtu", "qdisc", "operstate", "num_tx_queues", "num_rx_queues", "gso_max_size", "gso_max_segs",
           "gso_ipv4_max_size", "gro_max_size", "gro_ipv4_max_size", "tso_max_size", "tso_max_segs", "xdp")
Found = "Iterator[Tuple[str, str]]"


def look(prefix: "Sequence[str]", dev: str) -> "Dict[str, str]":
    """Settings by name, of the end that prefix leads to; only "unread", with the reason, if none can be read."""
    script = f"dev={shlex.quote(dev)}\n{SCRIPT}"
    try:    # the script goes to stdin: as an argument to ssh it would need quoting twice
        done = machine.ask([*prefix, "sh"], 30, script.encode(), preexec_fn=machine.free_signals)
    except OSError as fault:
        return {"unread": f"{machine.shown([*prefix, 'sh'])}: {fault.strerror}"}
    if done.reason:
        return {"unread": f"{machine.shown([*prefix, 'sh'])}: {done.reason}"}
    found = dict(read(done.stdout))
    return found or {"unread": (done.stderr.strip().splitlines() or [f"status {done.exit}"])[-1]}


def read(text: str) -> Found:
    """Parse the script's output. Names of a bond's or VLAN's lower interfaces are prefixed with the interface."""
    devices: "List[str]" = []
    for part in re.split(r"^@@ ", text, flags=re.M)[1:]:
        name, _, body = part.partition("\n")
        kind, _, table = name.partition(" ")
        if kind == "of":
            devices.append(table)
            continue
        found = of_ethtool(ETHTOOL[table], body) if kind == "ethtool" else JSON_READERS.get(kind, of_files)(kind, body)
        yield from ((f"{devices[-1]} {name}" if len(devices) > 1 else name, value) for name, value in found)


def of_files(kind: str, body: str) -> Found:
    """Lines "path:value". Those whose paths differ only in a number, such as a queue's, are merged."""
    several: "Dict[str, List[str]]" = {}
    for line in body.splitlines():
        path, _, value = line.partition(":")
        numbered = kind != "sysctl"
        path = re.sub(r"(?<![.\w])\d+$|(?<=[a-z-])\d+(?=/)", "*", path) if numbered else f"net/{path}"
        several.setdefault(path, []).append(" ".join(value.split()))
    for path, values in several.items():
        name = f"{kind} {path.replace('/', '.') if kind == 'sysctl' else path}"
        same = len(set(values)) == 1
        yield name.replace(" *", " affinity"), values[0] if same and kind != "irq" else " ".join(values)


def of_ethtool(kind: str, body: str) -> Found:
    """Lines "name: value"; for rings and the like, the current values and not the maximum."""
    body = body.rpartition("Current hardware settings:")[2]
    parent = ""
    for line in body.splitlines():
        name, colon, value = line.partition(":")
        value = value.replace("[fixed]", "").strip()
        if not colon or not value or value == "n/a" or name.startswith("supports-"):
            continue
        if name[:1].isspace() and kind == "offload ":
            name = f"{parent}/{name.strip()}"
        else:
            parent = name = NAMES.get(name.strip(), name.strip())
        yield f"{kind}{name}", " ".join(value.split())


def objects(body: str) -> "List[Dict[str, Any]]":
    try:
        return [one for one in json.loads(body) if isinstance(one, dict)]
    except (ValueError, TypeError):
        return []


def of_link(kind: str, body: str) -> Found:
    for one in objects(body)[:1]:
        for name in OF_LINK:
            if name in one:
                yield name if name in ("mtu", "xdp") else f"{kind} {name}", words(one[name])


def of_traffic_control(kind: str, body: str) -> Found:
    """Queueing disciplines or classes without their handles; equal ones are counted."""
    found = Counter(words({name: value for name, value in one.items() if name not in (
        "handle", "dev", "root", "parent", "refcnt", "leaf")}) for one in objects(body))
    if found:
        yield kind, "; ".join(text if number == 1 else f"{number} {text}" for text, number in found.items())


JSON_READERS: "Dict[str, Callable[[str, str], Found]]" = {
    "link": of_link, "qdisc": of_traffic_control, "class": of_traffic_control}


def words(value: Any) -> str:
    """A JSON object as readable text: {"kind": "tbf", "options": {"rate": 1}} is "tbf rate 1"."""
    if isinstance(value, dict):
        return " ".join(words(one) if name in ("kind", "class", "options") else f"{name} {words(one)}"
                        for name, one in value.items() if one != {})
    return " ".join(map(words, value)) if isinstance(value, list) else str(value)


def short(text: Any) -> str:
    text = str(text)
    return text if len(text) <= 100 else text[:97] + "..."


def changed(a: "Dict[str, Any]", b: "Dict[str, Any]", before: str = "") -> "Iterator[str]":
    """Lines such as "offload tso: on -> off". Parts of a group of features are left out."""
    for name in [*a, *(name for name in b if name not in a)]:
        parent = name.partition("/")[0]
        if a.get(name) != b.get(name) and (parent == name or a.get(parent) == b.get(parent)
                                           or not name.startswith("offload ")):
            yield f"{before}{name}: {short(a.get(name, 'none'))} -> {short(b.get(name, 'none'))}"


def of_commands(a: "Sequence[Slot]", b: "Sequence[Slot]") -> "Iterator[str]":
    if not a or not b:
        return
    one, other = ([word for word in slots[0].command if not word.startswith("--json")] for slots in (a, b))
    for kind, i, j, k, m in difflib.SequenceMatcher(None, one, other, False).get_opcodes():
        if kind != "equal":
            first = i - 1 if i and one[i - 1].startswith("-") and one[i - 1] != "--" else i  # the option that the value belongs to
            k -= i - first
            yield f"command: {machine.shown(one[first:j]) or 'none'} -> {machine.shown(other[k:m]) or 'none'}"


GAUGES = re.compile(r"tcp\.(min_rtt|rtt|rttvar)_us$|tcp\.(cwnd|ssthresh|mss|path_mtu|send_window|reordering|"
                    r"receive_space)$|cpu\.|thread\.cpu_share$|sampler\.gap_max_s$|udp\.|"
                    r"moved\.qdisc\.backlog_end$|flow\.(sndbuf|rcvbuf|send_size|receive_size)$|cgroup\.cpu\.quota$")
COUNTS = re.compile(r"tcp\.|moved\.|thread\.(run_delay_s|switches|user_s|system_s)|work\.|pressure\.|foreign\.|"
                    r"engine\.|cgroup\.|sampler\.stopped_s$|flow\.(sends|receives|socket_drops|requests_lost)")
PASSED = re.compile(r"tcp\.(bytes|unacked|notsent|delivery|pacing|timestamps|sack|ecn|window_scal|send_scale|"
                    r"receive_scale|samples|connections)|moved\.seconds$|cpu\.count$|.*\.(idle|iowait)$|work\.threads$|"
                    r".*[Oo]ctets$|cgroup\.cpu\.period_ms$|engine\.(processors|busy_poll_us)$|"
                    r"moved\.(nic|tc\..*)\.?([rt]x_)?bytes$")
SETTINGS = re.compile(r"host\.|tc\.(out|in)\.(?!drops|overlimits)|tcp\.congestion$|thread\.cpu$|engine\.name$|"
                      r"flow\.device$")
PASSED_SETTINGS = re.compile(r"host\.(load|cpu\.mhz|cpu\.steal_share|nic\.other_packets_per_s|name)$")
# In each unit, a smaller difference is ignored: a hundredth of a processor, ten a second ...
NOTHING = {"of the time": 0.01, "bytes/s": 1e4, "/s": 10.0, "us": 5.0, "processors": 0.02, "": 1.0}
FIRST = ("tcp.", "thread.", "cpu.", "moved.nic.", "moved.ethtool.", "moved.qdisc.", "moved.snmp.")


class Counted(NamedTuple):
    """A counter in the slots of A and of B: in its own unit, and per unit of work."""
    end: str
    name: str
    unit: str
    a: "List[float]"
    b: "List[float]"
    work_a: "List[float]"
    work_b: "List[float]"

    @property
    def medians(self) -> "Tuple[float, float]":
        return statistics.median(self.a), statistics.median(self.b)

    @property
    def size(self) -> float:
        """The logarithm of the ratio of the medians; 0 if they hardly differ."""
        (a, b), nothing = self.medians, NOTHING[self.unit]
        size = abs(math.log((max(0.0, b) + nothing) / (max(0.0, a) + nothing)))
        return size if size >= math.log(LEAST_RATIO) and abs(b - a) >= nothing else 0.0

    def line(self) -> str:
        a, b = self.medians
        if self.unit == "of the time":
            return f"{self.end} {self.name}: {100 * a:.3g} -> {100 * b:.3g} % of the time"
        a, b = (f"{value:.0f}" if value == int(value) else output.figure(value) for value in (a, b))
        return f"{self.end} {self.name}: {a} -> {b} {self.unit}".rstrip()


def unit_of(name: str, gauge: bool) -> str:
    if name.startswith(("cpu.", "thread.cpu_share", "cgroup.cpu.quota")):
        return "processors"
    if gauge:
        return "us" if name.endswith("_us") else ""
    if name.endswith(("_us", "_s")):
        return "of the time"
    return "bytes/s" if re.search(r"(?<![a-z])bytes", name) else "/s"


def sums(bag: "Dict[str, Any]") -> "Dict[str, float]":
    """Counters and gauges of an evidence bag. Those of single processors are added up; softirqs are also kept apart."""
    found: "Dict[str, float]" = {}
    for name, value in bag.items():
        if is_figure(value) and not PASSED.match(name) and (GAUGES.match(name) or COUNTS.match(name)):
            if re.match(r"cpu\.\d+\.softirq$", name):
                found[name] = value
            name = re.sub(r"^(cpu|moved\.softnet)\.\d+\.", r"\1.*.", name)
            found[name] = found.get(name, 0.0) + value
    return found


def bags(slots: "Sequence[Slot]", end: str) -> "List[Dict[str, Any]]":
    return [bag for bag in (slot.evidence.get(end) for slot in slots) if bag and is_figure(bag.get("flow.seconds"))]


def counted(a: "Sequence[Slot]", b: "Sequence[Slot]") -> "Iterator[Counted]":
    for end in ("near", "far"):
        whole = bags(a, end), bags(b, end)
        if not all(whole):
            continue
        known = [[sums(bag) for bag in side] for side in whole]
        for name in dict.fromkeys(name for side in known for one in side for name in one):
            gauge = GAUGES.match(name) is not None
            per_second, per_work = [], []
            for side, sides_bags in zip(known, whole):
                rows = [rates(name, gauge, one, bag) for one, bag in zip(side, sides_bags)]
                per_second.append([row[0] for row in rows if row])
                per_work.append([row[1] for row in rows if row])
            if [len(side) for side in per_second] == [len(side) for side in whole]:
                yield Counted(end, name, unit_of(name, gauge), *per_second, *per_work)


def rates(name: str, gauge: bool, one: "Dict[str, float]", bag: "Dict[str, Any]") -> "Optional[Tuple[float, float]]":
    """A slot's figure per second and per unit of work; None if unknown. The bag lacks counters that did not move."""
    value = one.get(name)
    if value is None and not name.startswith(("moved.", "engine.")) or name in (bag.get("unread") or {}):
        return None
    value = value or 0.0
    if gauge:
        return value, value
    rate = value / max(1e-9, bag["flow.seconds"]) * (1e-6 if name.endswith("_us") else 1)
    work = bag.get("flow.transactions") or (bag.get("flow.bytes_sent") or 0) + (bag.get("flow.bytes_received") or 0)
    return rate, rate * bag["flow.seconds"] / max(1, work)


def error_of(a: "Sequence[float]", b: "Sequence[float]") -> float:
    """The p-value of two samples' difference: by rank, or by Welch's test if there are too few slots for ranks."""
    from scipy import stats     # slow to import: only where there is a difference to explain
    if min(len(a), len(b)) < 2:
        return 1.0
    if len({*a}) == len({*b}) == 1:
        return float(a[0] == b[0])
    if min(len(a), len(b)) >= FEW:
        return float(stats.mannwhitneyu(a, b, alternative="two-sided").pvalue)
    with warnings.catch_warnings():     # values that are nearly equal
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(stats.ttest_ind(a, b, equal_var=False).pvalue)


def of_counters(a: "Sequence[Slot]", b: "Sequence[Slot]") -> "Iterator[str]":
    """Counters that differ both per second and per unit of work, largest first; of those that moved alike, one."""
    try:
        importlib.import_module("scipy.special")
    except ImportError:     # the gate has already reported that it is missing
        return
    from netkit.gate import stats
    found = [one for one in counted(a, b) if one.size]
    certain = stats.holm([max(error_of(one.a, one.b), error_of(one.work_a, one.work_b)) for one in found],
                         MOST_ERROR)
    kept = [one for one, sure in zip(found, certain) if sure]
    told: "List[Tuple[float, float]]" = []
    for one in sorted(kept, key=lambda one: (-round(one.size, 1), not one.name.startswith(FIRST))):
        if not any(all(math.isclose(x, y, rel_tol=0.03, abs_tol=1e-6) for x, y in zip(one.medians, other))
                   for other in told):
            yield one.line()
        told.append(one.medians)


def constants(slots: "Sequence[Slot]", end: str) -> "Dict[str, Any]":
    """Settings in the evidence of one end that were the same in all slots of a side."""
    whole = bags(slots, end)
    return {name: value for name, value in (whole[0] if whole else {}).items()
            if SETTINGS.match(name) and not PASSED_SETTINGS.match(name)
            and all(bag.get(name) == value for bag in whole)
            and (name != "thread.cpu" or len(whole) >= 5)}  # in a few slots it is the same by chance


def of_constants(a: "Sequence[Slot]", b: "Sequence[Slot]") -> "Iterator[str]":
    for end in ("near", "far"):
        one, other = constants(a, end), constants(b, end)
        both = [name for name in one if name in other]
        yield from changed({name: one[name] for name in both}, {name: other[name] for name in both}, f"{end} ")


def differences(a: "Sequence[Slot]", b: "Sequence[Slot]", settings_a: "Dict[str, Any]",
                settings_b: "Dict[str, Any]") -> "List[str]":
    """What differs between the slots of A and B, one line each: options, settings, counters."""
    a, b = ([slot for slot in slots if not slot.failed] for slots in (a, b))
    known = bool(settings_a) and bool(settings_b) and not {"unread"} & {*settings_a, *settings_b}
    lines = [*of_commands(a, b), *(changed(settings_a, settings_b) if known else ()),
             *(line for line in of_constants(a, b) if not (known and line.startswith("near host.")))]
    lines = lines[:MOST_LINES] + [f"{len(lines) - MOST_LINES} settings more"] * (len(lines) > MOST_LINES)
    counters = list(of_counters(a, b))
    return lines + counters[:max(3, MOST_LINES - len(lines))]


def explain(gate: Gate) -> None:
    for one in gate.judgements:
        if one.verdict in (WORSE, BETTER):
            sides = [[slot for slot in gate.slots if slot.point == one.point and slot.side == side]
                     for side in (A, B)]
            settings = [next((slot.settings for slot in reversed(side) if slot.settings), {}) for side in sides]
            one.differs = differences(sides[0], sides[1], settings[0], settings[1])
