"""The causes that explain_bed.py plants: their names, the right verdicts, and verdicts that are half of the truth. A
half counts only together with the other half: if other traffic uses part of a shaped link, `link` is true, and
`foreign-traffic` must be named, too.
"""

from functools import partial
from typing import Callable, NamedTuple, Tuple

from explain_harms import (Drop, Foreign, Freeze, Harm, Hog, Line, LinkDown, Nice, Nothing, Outage, Queue, Quota,
                           Route, Steering, Stop, Sysctl, Told, asked, told)
from explain_links import HidingLab, Lab, OneEnd, RoutedLab


class Plant(NamedTuple):
    name: str
    right: str              # verdicts, any of which is right
    half: str
    link: Callable[[], Lab]
    options: str            # global ones, "--", test-specific ones
    harms: Tuple[Callable[[], Harm], ...]


plain = partial(Lab, "--rate", "none")
hiding = partial(HidingLab, "--rate", "none")
shaped = partial(Lab, "--rate", "100mbit")
ten = partial(Lab, "--rate", "10mbit")
twenty = partial(Lab, "--rate", "20mbit")
far_away = partial(Lab, "--rate", "none", "--delay", "5ms", "--emulator", "link")     # RTT 10 ms
slow_hop = partial(Lab, "--rate", "20mbit", "--delay", "5ms", "--emulator", "link")   # and a queue on the path
routed = partial(RoutedLab, "20mbit")
one_end = partial(OneEnd, "--rate", "none")


def pacing() -> Harm:
    return Told("pacing, bytes/s",
                lambda bed: bed.document["parameters"]["asked"]["pacing_bytes_per_s"])


DATA = "meta length > 1000"
ONE_PERCENT = f"{DATA} numgen random mod 100 < 1"
HALF_PERCENT = f"{DATA} numgen random mod 200 < 1"
SLOW_READER = "-b 0,1 -w 0,5ms -- -S 16K -M 16K"
OUTAGE = "loss sender-stalled receiver-stalled"
RECEIVER = "receive-window"     # true whatever the reader does or does not do, and not a reason
LATE_READS = f"receiver-cpu receiver-stalled {RECEIVER}"     # what a quota does, not why

# --- processors: too little, too late, not at all

PROCESSORS = (
    Plant("quota 20 of 100 ms, sender", "sender-quota", "sender-cpu sender-stalled", plain, "",
          (lambda: Quota("near", 20, 100),)),
    Plant("quota 5 of 20 ms, sender", "sender-quota", "sender-cpu sender-stalled", plain, "",
          (lambda: Quota("near", 5, 20),)),
    Plant("quota 20 of 100 ms, reader", "receiver-quota", LATE_READS, plain,
          "", (lambda: Quota("far", 20, 100),)),
    Plant("quota 5 of 20 ms, reader", "receiver-quota", LATE_READS, plain,
          "", (lambda: Quota("far", 5, 20),)),
    Plant("quota 20 of 100 ms, both ends", "sender-quota receiver-quota", "sender-cpu receiver-cpu",
          plain, "", (lambda: Quota("near", 20, 100), lambda: Quota("far", 20, 100, 0))),
    Plant("quota 20 of 100 ms, MAERTS sender", "sender-quota", "sender-cpu sender-stalled", plain,
          "-t TCP_MAERTS", (lambda: Quota("far", 20, 100),)),
    Plant("quota 20 of 100 ms, MAERTS reader", "receiver-quota", LATE_READS,
          plain, "-t TCP_MAERTS", (lambda: Quota("near", 20, 100),)),
    Plant("quota 5 of 20 ms, RR far", "receiver-quota", "receiver-cpu receiver-stalled", plain,
          "-t TCP_RR", (lambda: Quota("far", 5, 20),)),
    Plant("quota 20 of 100 ms, RR near", "sender-quota", "sender-cpu sender-stalled", plain,
          "-t TCP_RR", (lambda: Quota("near", 20, 100),)),
    Plant("quota 20 of 100 ms, UDP sender", "sender-quota", "sender-cpu udp-receive-buffer", plain,
          "-t UDP_STREAM -- -m 1472", (lambda: Quota("near", 20, 100),)),
    Plant("quota 20 of 100 ms, UDP reader", "receiver-quota", "receiver-cpu udp-receive-buffer", plain,
          "-t UDP_STREAM -- -m 1472", (lambda: Quota("far", 20, 100),)),
    Plant("quota behind another /sys, sender", "sender-quota", "sender-cpu sender-stalled", hiding,
          "", (lambda: Quota("near", 20, 100),)),
    Plant("quota behind another /sys, reader", "receiver-quota", LATE_READS, hiding, "",
          (lambda: Quota("far", 20, 100),)),
    Plant("quota behind another /sys, MAERTS", "receiver-quota", LATE_READS, hiding,
          "-t TCP_MAERTS", (lambda: Quota("near", 5, 20),)),
    Plant("quota behind another /sys, RR far", "receiver-quota", LATE_READS, hiding,
          "-t TCP_RR", (lambda: Quota("far", 5, 20),)),
    Plant("quota of the reader, 4 flows", "receiver-quota", LATE_READS, plain,
          "--flows 4", (lambda: Quota("far", 20, 100),)),
    Plant("reader stopped half of the time", "receiver-stalled", f"reader-slow {RECEIVER}", plain,
          "", (lambda: Stop("far"),)),
    Plant("sender stopped half of the time", "sender-stalled", "sending-application", plain, "",
          (lambda: Stop("near"),)),
    # A larger buffer holds 20 ms of data.
    Plant("reader stopped 20 of 40 ms", "receiver-stalled", f"reader-slow receive-buffer {RECEIVER}", plain,
          "-- -S 128K", (lambda: Stop("far", 0.02, 0.02),)),
    Plant("MAERTS sender stopped 2/3", "sender-stalled", "sending-application", plain,
          "-t TCP_MAERTS", (lambda: Stop("far", 0.2, 0.1),)),
    Plant("RR, far end stopped half", "receiver-stalled", "turns", plain, "-t TCP_RR",
          (lambda: Stop("far"),)),
    Plant("RR, near end stopped half", "sender-stalled", "turns", plain, "-t TCP_RR",
          (lambda: Stop("near"),)),
    Plant("UDP reader stopped half", "receiver-stalled", "udp-receive-buffer reader-slow", plain,
          "-t UDP_STREAM -- -m 1472", (lambda: Stop("far"),)),
    Plant("MAERTS reader stopped half", "receiver-stalled", f"reader-slow {RECEIVER}", plain,
          "-t TCP_MAERTS", (lambda: Stop("near"),)),
    Plant("sender stopped 20 of 40 ms", "sender-stalled", "sending-application", plain, "",
          (lambda: Stop("near", 0.02, 0.02),)),
    Plant("reader frozen half of the time", "receiver-stalled", f"reader-slow {RECEIVER}", plain,
          "", (lambda: Freeze("far"),)),
    Plant("RR, far end frozen half", "receiver-stalled", "turns", plain, "-t TCP_RR",
          (lambda: Freeze("far"),)),
    Plant("UDP_RR, far end stopped half", "receiver-stalled", "turns", plain, "-t UDP_RR",
          (lambda: Stop("far"),)),
    Plant("connections, quota of the far end", "receiver-quota", "receiver-cpu receiver-stalled", plain,
          "-t TCP_CRR", (lambda: Quota("far", 5, 20, 0.15),)),
    Plant("sender beside a CPU hog", "sender-cpu", "", plain, "-T 0,1", (lambda: Hog(0),)),
    Plant("reader beside two CPU hogs", "receiver-cpu", "", plain, "-T 0,1",
          (lambda: Hog(1, 2),)),
    Plant("RR, far end beside CPU hogs", "receiver-cpu", "turns", plain, "-T 0,1 -t TCP_RR",
          (lambda: Hog(1, 3),)),
    Plant("sender of low priority beside a hog", "sender-cpu", "", plain, "-T 0,1",
          (lambda: Hog(0), lambda: Nice("near", 19))),
    Plant("RR, far end of low priority, hog", "receiver-cpu", "turns", plain,
          "-T 0,1 -t TCP_RR", (lambda: Hog(1), lambda: Nice("far", 19))),
    Plant("both ends on one processor", "sender-cpu receiver-cpu", "", plain, "-T 0,0",
          (lambda: told("near", "thread.cpu_share", 0.2),)),
    Plant("sender of 16 bytes at a time", "sender-cpu", "", plain, "-- -m 16",
          (lambda: told("near", "flow.send_size", 16, 16),)),
    Plant("nothing: a fast link", "sender-cpu receiver-cpu", "", plain, "",
          (lambda: told("near", "thread.cpu_share", 0.1),)),
    Plant("far softirq", "far-softirq", "", plain, "-T 0,0", (Steering,)),
    Plant("far softirq, datagrams", "far-softirq", "", plain, "-t UDP_STREAM -T 0,0 -- -m 1472",
          (Steering,)),
    Plant("reader busy, small buffer", "receiver-cpu", RECEIVER, plain,
          "-K 0,1000000 -- -M 1000000 -S 32K", (lambda: told("far", "flow.rcvbuf", 1, 70e3),)),
)

# --- what the programs and their buffers do

PROGRAMS = (
    Plant("reader asleep, small buffer", "reader-slow", RECEIVER, plain, SLOW_READER,
          (lambda: asked("far", "interval_us"),)),
    Plant("MAERTS reader asleep", "reader-slow", RECEIVER, plain,
          "-t TCP_MAERTS -b 1 -w 5ms -- -s 16K -M 16K,16K", (lambda: asked("near", "interval_us"),)),
    Plant("sender that sleeps", "sending-application pacing", "", plain, "-b 1 -w 10ms -- -m 64K",
          (lambda: asked("near", "interval_us"),)),
    Plant("UDP sender that sleeps", "sending-application pacing", "", plain,
          "-t UDP_STREAM -b 5 -w 10ms -- -m 1472", (lambda: asked("near", "interval_us"),)),
    Plant("MAERTS sender that sleeps", "sending-application pacing", "", plain,
          "-t TCP_MAERTS -b 0,1 -w 0,10ms -- -m 64K,64K", (lambda: asked("far", "interval_us"),)),
    Plant("UDP reader that sleeps", "udp-receive-buffer reader-slow", "pacing sending-application", plain,
          "-t UDP_STREAM -b 20,1 -w 10ms,5ms -- -m 1472", (lambda: asked("far", "interval_us"),)),
    Plant("pacing rate asked for", "pacing", "sending-application", plain, "-- -q 2500000",
          (pacing,)),
    Plant("pacing rate asked for, 10 ms", "pacing", "sending-application", far_away,
          "-- -q 1250000", (pacing,)),
    Plant("tiny UDP receive buffer", "udp-receive-buffer", "", plain, "-t UDP_STREAM -- -m 1472 -S 2304",
          (lambda: told("far", "flow.rcvbuf", 1, 10e3),)),
    Plant("send buffer, 10 ms", "send-buffer", "", far_away, "-- -s 16K -m 1448",
          (lambda: told("near", "flow.sndbuf", 1, 40e3),)),
    Plant("MAERTS send buffer, 10 ms", "send-buffer", "", far_away,
          "-t TCP_MAERTS -- -S 16K -m 1448,1448", (lambda: told("far", "flow.sndbuf", 1, 40e3),)),
    Plant("tcp_wmem small, 10 ms", "send-buffer", "", far_away, "-- -m 1448",
          (lambda: Sysctl("near", tcp_wmem="4096 16384 32768"),)),
    Plant("receive buffer, 10 ms", "receive-buffer", RECEIVER, far_away, "-- -S 16K",
          (lambda: told("far", "flow.rcvbuf", 1, 40e3),)),
    Plant("MAERTS receive buffer, 10 ms", "receive-buffer", RECEIVER, far_away,
          "-t TCP_MAERTS -- -s 16K", (lambda: told("near", "flow.rcvbuf", 1, 40e3),)),
    Plant("tcp_rmem small, 10 ms", "receive-buffer", f"{RECEIVER} window-clamp", far_away, "",
          (lambda: Sysctl("far", tcp_rmem="4096 16384 32768"),)),
    Plant("no window scaling, 10 ms", "window-clamp", f"{RECEIVER} receive-buffer", far_away,
          "", (lambda: Sysctl("far", tcp_window_scaling="0"),)),
    Plant("no window scaling at the sender", "window-clamp", f"{RECEIVER} receive-buffer", far_away,
          "", (lambda: Sysctl("near", tcp_window_scaling="0"),)),
    Plant("route clamps the window", "window-clamp", f"{RECEIVER} receive-buffer", far_away,
          "", (lambda: Route("far", "window", "32768"),)),
    Plant("MAERTS, route clamps the window", "window-clamp", f"{RECEIVER} receive-buffer", far_away,
          "-t TCP_MAERTS", (lambda: Route("near", "window", "32768"),)),
    Plant("turn by turn, 10 ms", "turns", "", far_away, "-t TCP_RR",
          (lambda: told("near", "tcp.min_rtt_us", 9000),)),
    Plant("UDP turn by turn, 10 ms", "turns", "", far_away, "-t UDP_RR",
          (lambda: told("near", "flow.transactions", 10, 400),)),
    Plant("16 in flight, 10 ms", "turns", "", far_away, "-t TCP_RR -- -b 16 -D",
          (lambda: told("near", "tcp.min_rtt_us", 9000),)),
    Plant("connections, 10 ms", "turns", "", far_away, "-t TCP_CRR",
          (lambda: told("near", "flow.transactions", 5, 400),)),
)

# --- links, queues and others

LINKS = (
    Plant("tbf shaper", "link", "", shaped, "", (lambda: Queue("near"),)),
    Plant("tbf shaper, IPv6", "link", "", shaped, "-H fd77::2", (lambda: Queue("near"),)),
    Plant("tbf shaper, MAERTS", "link", "", shaped, "-t TCP_MAERTS", (lambda: Queue("far"),)),
    Plant("tbf shaper, UDP", "link", "", shaped, "-t UDP_STREAM -- -m 1472", (lambda: Queue("near"),)),
    Plant("tbf shaper, 4 flows", "link", "", shaped, "--flows 4", (lambda: Queue("near"),)),
    Plant("tbf shaper, a little loss", "link", "loss", ten, "",
          (lambda: Queue("near"), lambda: Drop("far", f"{DATA} numgen inc mod 1000 == 500"))),
    Plant("tbf shaper, small segments", "link", "mtu", ten, "-- -G 300",
          (lambda: Queue("near"),)),
    Plant("tiny MTU", "mtu", "", partial(plain, "--mtu", "256"), "",
          (lambda: told("near", "tcp.path_mtu", 256, 256),)),
    Plant("slow hop on the way", "path-rate", "", slow_hop, "",
          (lambda: told("near", "tcp.busy_us", 5e5),)),
    Plant("slow router, short path", "path-rate", "", routed, "",
          (lambda: Queue("router", device="right"),)),
    Plant("slow router, BBR", "path-rate", "", routed, "-- -K bbr",
          (lambda: Queue("router", device="right"),)),
    Plant("slow hop, BBR", "path-rate", "", slow_hop, "-- -K bbr", (lambda: told("near", "tcp.busy_us", 5e5),)),
    Plant("slow hop and loss, BBR", "path-rate", "loss", partial(slow_hop, "--loss", "1"), "-- -K bbr",
          (lambda: Line("lost"),)),
    Plant("UDP into a slow router", "path-rate loss", "policer pacing sending-application", routed,
          "-t UDP_STREAM -b 30 -w 10ms -- -R 1 -m 1472",
          (lambda: Queue("router", device="right"),)),
    Plant("RR, full return direction", "link path-rate", "", ten, "-t TCP_RR -- -r 1,200000",
          (lambda: Queue("far"),)),
    Plant("RR, full way there", "link path-rate", "", ten, "-t TCP_RR -- -r 200000,1",
          (lambda: Queue("near"),)),
    Plant("RR, shaper on the way back alone", "link path-rate", "", plain,
          "-t TCP_RR -- -r 1,200000", (lambda: Queue("far", "10mbit"),)),
    Plant("RR, slow router on the way back", "link path-rate", "", partial(RoutedLab, "", "10mbit"),
          "-t TCP_RR -- -r 1,200000", (lambda: Queue("router", device="left"),)),
    Plant("policer, short path", "policer loss", "", plain, "",
          (lambda: Drop("far", f"{DATA} limit rate over 2500 kbytes/second burst 20 kbytes"),)),
    Plant("policer, 10 ms", "policer loss", "", far_away, "",
          (lambda: Drop("far", f"{DATA} limit rate over 2500 kbytes/second burst 20 kbytes"),)),
    Plant("policer, UDP", "policer path-rate loss", "pacing sending-application", plain,
          "-t UDP_STREAM -b 40 -w 10ms -- -m 1472",
          (lambda: Drop("far", f"{DATA} limit rate over 2500 kbytes/second burst 20 kbytes"),)),
    Plant("ACKs over a slow way back", "ack-path", "", plain, "",
          (lambda: Queue("far", "100kbit", limit=20_000),)),
    Plant("ACKs through a slow router", "ack-path", "", partial(RoutedLab, "", "100kbit", 20_000),
          "", (lambda: Queue("router", device="left"),)),
    Plant("ACKs over a slow way back, MAERTS", "ack-path", "", plain, "-t TCP_MAERTS",
          (lambda: Queue("near", "100kbit", limit=20_000),)),
    Plant("policer, MAERTS", "policer loss", "", far_away, "-t TCP_MAERTS",
          (lambda: Drop("near", f"{DATA} limit rate over 2500 kbytes/second burst 20 kbytes"),)),
    Plant("others' TCP on the shaper, MAERTS", "foreign-traffic", "link", twenty,
          "-t TCP_MAERTS", (lambda: Foreign("-t TCP_MAERTS --flows 4"),)),
    Plant("others' TCP beside RR", "foreign-traffic path-rate", "link turns", twenty,
          "-t TCP_RR", (lambda: Foreign("--flows 4"),)),
    Plant("RR, 32 in flight fill the link", "link path-rate", "", ten,
          "-t TCP_RR -- -b 32 -D -r 1000,1000", (lambda: Queue("near"),)),
    Plant("others' UDP on the same shaper", "foreign-traffic", "link", twenty, "",
          (lambda: Foreign("-t UDP_STREAM -b 15 -w 10ms -- -m 1472"),)),
    Plant("others' TCP on the same shaper", "foreign-traffic", "link", twenty, "",
          (lambda: Foreign("--flows 4"),)),
    Plant("others' UDP on the same router", "foreign-traffic path-rate", "loss", routed, "",
          (lambda: Foreign("-t UDP_STREAM -b 12 -w 10ms -- -m 1472", "router"),)),
    Plant("others' UDP beside UDP", "foreign-traffic", "link", twenty, "-t UDP_STREAM -- -m 1472",
          (lambda: Foreign("-t UDP_STREAM -b 15 -w 10ms -- -m 1472"),)),
)

# --- loss, outages, and two causes at once

LOSSES = (
    Plant("1 % loss", "loss", "", plain, "", (lambda: Drop("far", ONE_PERCENT),)),
    Plant("1 % loss, IPv6", "loss", "", plain, "-H fd77::2",
          (lambda: Drop("far", ONE_PERCENT),)),
    Plant("1 % loss, MAERTS", "loss", "", plain, "-t TCP_MAERTS",
          (lambda: Drop("near", ONE_PERCENT),)),
    Plant("1 % loss, 4 flows", "loss", "", far_away, "--flows 4",
          (lambda: Drop("far", ONE_PERCENT),)),
    Plant("1 % loss, 10 ms", "loss", "", partial(far_away, "--loss", "1"), "", (lambda: Line("lost"),)),
    Plant("1 % loss, 5 % duplicates", "loss", "", partial(far_away, "--loss", "1", "--duplicate", "5"), "",
          (lambda: Line("lost"), lambda: Line("duplicated"))),
    Plant("duplicates on a slow hop", "path-rate", "", partial(slow_hop, "--duplicate", "5"), "",
          (lambda: Line("duplicated"),)),
    Plant("reordering on a slow hop", "path-rate", "", partial(slow_hop, "--reorder", "2"), "",
          (lambda: Line("reordered"),)),
    Plant("UDP, 2 % loss", "loss", "pacing sending-application", plain,
          "-t UDP_STREAM -b 20 -w 10ms -- -m 1472",
          (lambda: Drop("far", f"{DATA} numgen random mod 50 < 1"),)),
    Plant("bursts of loss", "loss", "outage", far_away, "",
          (lambda: Drop("far", f"{DATA} numgen inc mod 600 >= 570"),)),
    Plant("UDP_RR with 5 % loss", "loss", "turns", plain, "-t UDP_RR -- -e 1 -r 10,10",
          (lambda: Drop("far", "meta l4proto udp numgen random mod 20 < 1"),)),
    Plant("RR with 10 % loss", "loss", "turns outage", far_away, "-t TCP_RR",
          (lambda: Drop("far", "meta length > 52 numgen random mod 10 < 1"),)),
    Plant("connections, every 50th SYN lost", "loss outage", "turns", plain,
          "-t TCP_CRR",
          (lambda: Drop("far", "tcp flags & (syn|ack) == syn numgen inc mod 50 == 49"),)),
    Plant("outages of 0.3 s", "outage", OUTAGE, plain, "",
          (lambda: Outage("far", 0.4, 0.3, 10),)),
    Plant("an outage of 0.8 s", "outage", OUTAGE, plain, "",
          (lambda: Outage("far", 0.5, 0.8),)),
    Plant("an outage of 0.8 s, MAERTS", "outage", OUTAGE, plain, "-t TCP_MAERTS",
          (lambda: Outage("near", 0.5, 0.8),)),
    Plant("an outage of 0.8 s, RR", "outage", OUTAGE, plain, "-t TCP_RR",
          (lambda: Outage("far", 0.5, 0.8),)),
    Plant("the router's link goes down", "outage", OUTAGE, RoutedLab, "",
          (LinkDown,)),
    Plant("a black hole from 0.5 s on", "outage", OUTAGE, plain, "",
          (lambda: Outage("far", 0.5, 2.5, rule=DATA),)),
    Plant("loss, and a reader slower still", "reader-slow", RECEIVER, plain, SLOW_READER,
          (lambda: Drop("far", HALF_PERCENT), lambda: asked("far", "interval_us"))),
    Plant("loss and a slow reader, 10 ms", "loss reader-slow", "", far_away,
          "-b 0,2 -w 0,10ms -- -S 32K -M 16K",
          (lambda: Drop("far", ONE_PERCENT), lambda: asked("far", "interval_us"))),
    Plant("hog and a small receive buffer", "sender-cpu receive-buffer receiver-cpu", RECEIVER, plain,
          "-T 0,1 -- -S 8K", (lambda: Hog(0), lambda: told("far", "flow.rcvbuf", 1, 20e3))),
    Plant("slow hop and a smaller window", "receive-buffer", f"path-rate {RECEIVER}", slow_hop,
          "-- -S 8K", (lambda: told("far", "flow.rcvbuf", 1, 20e3),)),
    Plant("quota of the reader, and loss", "receiver-quota loss", "receiver-cpu receiver-stalled", plain,
          "", (lambda: Quota("far", 5, 20), lambda: Drop("far", HALF_PERCENT))),
    Plant("shaper and a sender that sleeps", "sending-application pacing", "", shaped,
          "-b 1 -w 10ms -- -m 32K", (lambda: asked("near", "interval_us"),)),
)

# --- nothing: a machine without other work, where only processors, turns and full sockets limit

HERE = "-H 127.0.0.1"
CPUS = "sender-cpu receiver-cpu far-softirq"
DATAGRAMS = f"{CPUS} udp-receive-buffer"
TURNS = f"{CPUS} turns"


def unplanted(name: str, right: str, options: str, *, link: Callable[[], Lab] = plain,
              offloads: bool = True) -> Plant:
    return Plant(f"nothing: {name}", right, "", link, options, (lambda: Nothing(offloads),))


UNPLANTED = (
    unplanted("veth", CPUS, ""),
    unplanted("veth without GSO", CPUS, "", offloads=False),
    unplanted("veth without GSO, small segments", CPUS, "-- -G 536", offloads=False),
    unplanted("small segments", CPUS, "-- -G 536"),
    unplanted("MAERTS", CPUS, "-t TCP_MAERTS"),
    unplanted("MAERTS without GSO", CPUS, "-t TCP_MAERTS", offloads=False),
    unplanted("MAERTS, small segments", CPUS, "-t TCP_MAERTS -- -G 536"),
    unplanted("2 flows without GSO", CPUS, "--flows 2", offloads=False),
    unplanted("2 flows, 2 threads", CPUS, "--flows 2 --threads 2"),
    unplanted("RR", TURNS, "-t TCP_RR"),
    unplanted("RR without GSO", TURNS, "-t TCP_RR", offloads=False),
    unplanted("UDP_RR", TURNS, "-t UDP_RR"),
    unplanted("connections", TURNS, "-t TCP_CRR"),
    unplanted("UDP", DATAGRAMS, "-t UDP_STREAM -- -m 1472"),
    unplanted("UDP in fragments", DATAGRAMS, "-t UDP_STREAM -- -m 16384"),
    unplanted("loopback", CPUS, HERE, link=one_end),
    unplanted("loopback, MAERTS", CPUS, f"{HERE} -t TCP_MAERTS", link=one_end),
    unplanted("loopback, small segments", CPUS, f"{HERE} -- -G 536", link=one_end),
    unplanted("loopback, 2 flows, 2 threads", CPUS, f"{HERE} --flows 2 --threads 2", link=one_end),
    unplanted("loopback, RR", TURNS, f"{HERE} -t TCP_RR", link=one_end),
    unplanted("loopback, UDP", DATAGRAMS, f"{HERE} -t UDP_STREAM", link=one_end),
    unplanted("epoll", CPUS, "--engine epoll", offloads=False),
    unplanted("zerocopy", CPUS, "--engine zerocopy", offloads=False),
    unplanted("uring", CPUS, "--engine uring", offloads=False),
    unplanted("spin", CPUS, "--engine spin", offloads=False),
    unplanted("batch", DATAGRAMS, "--engine batch -t UDP_STREAM -- -m 1472"),
    unplanted("segment", DATAGRAMS, "--engine segment -t UDP_STREAM -- -m 1472"),
)

PLANTS = (*PROCESSORS, *PROGRAMS, *LINKS, *LOSSES, *UNPLANTED)
