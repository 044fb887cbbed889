"""What has been wrong once: each is the smallest case that showed it, with the law that it broke and what it said then.
`run.py --known` runs them all. Some show only now and then, and have a number of times. A few have only been in
danger, and are here since chance may leave them out."""

from typing import Any, Dict, List, NamedTuple


class Known(NamedTuple):
    case: "Dict[str, Any]"
    law: str
    was: str
    times: int = 1


KNOWN: "List[Known]" = [
    Known({"test": "UDP_STREAM", "warm": 0.1, "rate": "20M", "delay": 100}, "3 loss is the path's", "18.0 of 20 Mbit/s"),
    Known({"test": "UDP_STREAM", "warm": 1.0, "rate": "400k", "flows": 8, "late": 300}, "10 it goes on",
          "Connection refused (a firewall?)"),
    Known({"test": "UDP_STREAM", "seconds": 3.0, "warm": 2.0, "mbit": 10, "rate": "5M"}, "3 loss is the path's", "0.07 to 4.9 %", 3),
    Known({"test": "TCP_RR", "warm": 0.1, "rate": "500", "delay": 100}, "5 due is rate by time", "551.97 a second", 2),
    Known({"test": "TCP_CC", "warm": 1.0, "rate": "100", "delay": 50}, "10 it goes on", "not one transaction was completed"),
    Known({"test": "TCP_RR", "rate": "10"}, "5 due is rate by time", "11 due in a second"),
    Known({"test": "TCP_RR", "size": 23, "one_port": True, "stations": 1, "delay": 5}, "10 it goes on", "no end"),
    Known({"test": "TCP_RR", "one_port": True, "stations": 1, "delay": 50}, "8 both ends agree", "0 of 13 stamps"),
    Known({"test": "TCP_RR", "stations": 10, "size": 4000, "mbit": 10}, "8 both ends agree", "0 of 57: requests in pieces"),
    Known({"rate": "40M", "flows": 2, "size": 1 << 20, "buffers": 65536}, "5 a stream sends at its rate", "3.4 of 40 Mbit/s"),
    Known({"test": "TCP_RR", "seconds": 4.0, "delay": 100}, "2 elapsed is what was asked", "4.22 of 4 s"),
    Known({"seconds": 3.0, "down": "deaf", "down_s": 2.0}, "2 elapsed is what was asked", "24.40 over 8.00 of 4 s, complete"),
    Known({"test": "TCP_CRR", "seconds": 0.3, "late": 1500}, "10 it ends when it should", "never: the daemon waited"),
    Known({"test": "UDP_RR", "down": "cut", "down_s": 1.0}, "9 what is not whole says so", "3,043 a second, complete"),
    Known({"test": "TCP_CC", "rate": "500", "delay": 50}, "4 latencies are in order", "P50_LATENCY=140737488355"),
    Known({"test": "UDP_RR", "rate": "100", "loss": 5.0}, "7 one figure is one number", "P99 of 2^47 ns for Prometheus"),
    Known({"both": True}, "6 parts add up", "retransmissions of a receiver: 0"),
    Known({"test": "TCP_RR", "seconds": 2.0, "down": "silent", "down_s": 7.0}, "10 it goes on", "lost the control connection"),
    Known({"seconds": 2.0, "down": "silent", "down_s": 7.0}, "10 it goes on", "lost the control connection"),
    Known({"test": "UDP_STREAM", "rate": "5M", "down": "link", "down_s": 0.5}, "10 it goes on", "Network is unreachable"),
    Known({"test": "UDP_RR", "down": "route", "down_s": 0.3}, "10 it goes on", "No route to host"),
    *(Known({"test": test, "down": "link", "down_s": 0.5}, "10 it goes on", "TCP_CRR ended at once: a connection had no way")
      for test in ("TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR")),
    Known({"test": "UDP_RR", "count": 20, "loss": 5.0}, "10 it goes on", "no fault yet: a lost datagram is given up"),
    Known({"flows": 100, "mbit": 1, "seconds": 2.0}, "10 it goes on", "lost the control connection"),
    Known({"test": "UDP_RR", "seconds": 6.0, "delay": 600}, "10 it goes on", "not one transaction was completed"),
    Known({"test": "UDP_RR", "seconds": 6.0, "delay": 600, "rate": "10"}, "3 loss is the path's", "85 % lost"),
    Known({"seconds": 6.0, "delay": 600, "beside": "TCP_RR:50"}, "10 it goes on", "the load moved nothing for 1.1 s"),
    Known({"seconds": 5.0, "flows": 8, "buffers": 2 << 20, "mbit": 1}, "10 it ends when it should", "65 s of 5"),
    Known({"seconds": 2.0, "flows": 8, "buffers": 2 << 20, "mbit": 1, "warm": 1.0}, "10 it goes on", "status 1"),
    Known({"flows": 2000, "delay": 5}, "1 bytes are the witness's", "758 of 100 Mbit/s"),
    Known({"interim": 0.5, "mbit": 1, "seconds": 2.0, "buffers": 2 << 20}, "1 interim results are the path's", "4.19 of 1 Mbit/s"),
    Known({"test": "TCP_RR", "rate": "100", "seconds": 0.3, "frozen": "near", "frozen_s": 4.0}, "1 bytes are the witness's",
          "what was sent behind the window's end: 200 bytes of 129"),
    Known({"test": "TCP_RR", "seconds": 1.0, "frozen": "near", "frozen_s": 7.0}, "9 what is not whole says so", "averaged, no word"),
    *(Known({"test": test, "seconds": 0.3, "frozen": "near", "frozen_s": 7.0}, "9 what is not whole says so", "8 of 2 s, no word")
      for test in ("TCP_STREAM", "TCP_MAERTS", "UDP_STREAM", "TCP_CRR")),
    Known({"test": "UDP_STREAM", "seconds": 0.3, "warm": 0.1, "flows": 2}, "10 it goes on", "Connection refused (a firewall?)", 3),
    Known({"test": "UDP_RR", "rate": "500", "flows": 4, "loss": 5.0}, "6 parts add up", "bytes of flows: 3,616 of 4,000"),
    Known({"test": "UDP_RR", "burst": 7, "flows": 4}, "6 parts add up", "bytes of flows: 27,951 of 27,967"),
    Known({"test": "UDP_RR", "seconds": 2.0, "warm": 1.0, "late": 1500}, "1 bytes are the witness's",
          "REMOTE_BYTES_RECVD with the warm-up's: 48,130 of 32,410"),
    Known({"real": "client", "delay": 600}, "10 it ends when it should", "a daemon that waits two minutes for the data connection"),
    Known({"test": "UDP_STREAM", "both": True, "rate": "5M", "flows": 2, "delay": 100, "mbit": 20, "late": 1500}, "10 it goes on",
          "Connection refused (a firewall?): a daemon whose first datagram came 5 s after its grant"),
    Known({"test": "UDP_STREAM", "seconds": 0.3, "flows": 40, "engine": ",batch", "both": True}, "10 it goes on",
          "no data connection within 10 s: all that came to one of 40; 20,480 datagrams after the window's end"),
    Known({"test": "UDP_RR", "one_port": True, "delay": 300}, "3 loss is the path's", "its own tokens: STRAY_RESPONSES=2"),
    Known({"test": "UDP_RR", "seconds": 3.6, "rate": "500", "size": 1, "delay": 600}, "3 loss is the path's",
          "LATE_RESPONSES=155: given up by when they were due"),
    Known({"test": "UDP_MAERTS", "burst": 1, "wait": "5ms", "flows": 100, "size": 100, "mbit": 10}, "10 it ends when it should",
          "more than 60 s of 1: what was queued was read at the pace"),
    Known({"test": "TCP_CRR", "seconds": 2.0, "rate": "100", "flows": 40, "delay": 50}, "5 due is rate by time",
          "5 of 100 unanswered: what was connecting at the end never sent its request"),
    Known({"warm": 1.0, "mbit": 10, "delay": 50, "frozen": "signal", "frozen_s": 0.5}, "8 nothing counts behind a signal",
          "11.6 of 10 Mbit/s"),
    Known({"test": "MPTCP_RR", "delay": 600, "late": 1500, "mute": True}, "10 it goes on",
          "does not support this: the daemon hung up after 5 s"),
    Known({"seconds": 0.3, "warm": 0.1, "delay": 300}, "9 what is not whole says so", "a rate of 0 without a word"),
    Known({"seconds": 0.3, "beside": "TCP_RR:50", "frozen": "signal", "frozen_s": 0.5}, "10 it goes on",
          "went on for 6 s behind ^C while the probe ran alone: another session failed"),
    Known({"test": "UDP_MAERTS", "warm": 1.0, "rate": "5M", "flows": 40, "size": 1400, "mbit": 1.0, "down": "link", "down_s": 2.0},
          "2 elapsed is what was asked", "3.76 s of 4 where an end mark is lost"),
    Known({"rate": "5M", "flows": 8, "both": True, "size": 1400, "loss": 5.0}, "1 rate by time is bytes",
          "34 of 10 Mbit/s: the window opened when another session had its connections", 3),
    Known({"test": "UDP_STREAM", "seconds": 0.3, "warm": 1.0, "rate": "400k", "size": 23, "mbit": 1.0, "down": "silent",
           "down_s": 0.5}, "3 loss is the path's", "2,994 lost of 1,109: an outage that the queue brought behind the end"),
    Known({"test": "TCP_CRR", "seconds": 3.6, "warm": 0.1, "delay": 300}, "2 the window begins behind the warm-up",
          "the window's signal began the connection anew: 1.3 s in place of 1.2"),
    Known({"test": "UDP_MAERTS", "rate": "5M", "beside": "TCP_RR:50", "size": 1400, "mbit": 1.0}, "10 it goes on",
          "no latency under load, and no word why: the queue is longer than the test"),
    Known({"test": "TCP_MAERTS", "seconds": 0.3, "loss": 5.0}, "9 what is not whole says so",
          "0.00 without a word where the last segment of the handshake was lost", 8),
    Known({"test": "UDP_MAERTS", "warm": 1.0, "rate": "5M", "flows": 40, "size": 1400, "mbit": 1.0, "down": "link", "down_s": 4.0},
          "2 elapsed is what was asked", "4.10 s of 6 where results came in place of the end mark"),
    Known({"test": "TCP_MAERTS", "seconds": 0.3, "warm": 0.1, "rate": "400k", "buffers": 65536, "mbit": 10.0},
          "5 a stream sends at its rate", "the law's: no room for a message that is on its way as the window opens"),
]
