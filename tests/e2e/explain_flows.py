#!/usr/bin/env python3
"""--explain of several flows on a link that drops packets of some: those from one of two addresses. The document's
rows show by their counts which flows these are, and the explanation must give their number. Needs root, for
scripts/netlab."""

import os
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Tuple

import lib

FLOWS = 8
ADDRESSES = ("10.77.0.11", "10.77.0.12")
LOSSY = FLOWS // len(ADDRESSES)  # the flows from the second address
ATTEMPTS = 3                     # for flows that take turns on a busy machine's processor
# Every eighth packet with data, of any flow: connections can still be made.
DROP = f"ip saddr {ADDRESSES[1]} meta length > 200 numgen inc mod 8 == 0"
FLOWS_LINE = re.compile(r"^flows: (own|by-worker|shared|unclear): (.*)$", re.M)


class Lab(lib.Lab):
    def __init__(self) -> None:
        super().__init__(f"xf{os.getpid()}", "--rate", "50mbit", "--congestion", "cubic")

    def __enter__(self) -> "Lab":
        super().__enter__()
        for address in ADDRESSES:
            lib.must([*self.client, "ip", "addr", "add", f"{address}/24", "dev", "lab0"])
        return self


def explained(lab: Lab, port: int, place: str) -> Tuple[str, str, str]:
    """The verdict: kind, sentence and full text."""
    got = lib.run(lab.command(port, "-l", "1", "--explain", f"--json={place}/flows.json", "--flows", str(FLOWS),
                              "--source-range", "-".join(ADDRESSES)), 30)
    assert got.rc == 0, f"status {got.rc}: {got.err}"
    said = FLOWS_LINE.search(got.err)
    assert said and "nan" not in got.err, got.err
    return said[1], said[2], got.err


def nothing_planted(lab: Lab, port: int, place: str) -> str:
    """A shared queue drops packets too, but of no flow in particular."""
    kind, sentence, text = explained(lab, port, place)
    assert kind != "own" and f"{FLOWS} flows got" in sentence, text
    return f"{kind}: {sentence}"


def look_at_rows(place: str, said: str) -> None:
    """The figures in the sentence are in the document."""
    found: Any = lib.document(Path(place, "flows.json").read_text())
    flows = found["iterations"][0]["flows"]
    lost = [row["retransmissions"] * 16 > row["data_segments"] for row in flows]
    assert lost.count(True) == LOSSY, flows
    assert all(row["min_rtt_us"] > 0 and row["rwnd_limited_us"] >= 0 for row in flows), flows
    assert found["explanation"]["values"]["explain.flows_sentence"] == said, found["explanation"]


def loss_of_some(lab: Lab, port: int, place: str) -> str:
    for attempt in range(ATTEMPTS):
        kind, sentence, text = explained(lab, port, place)
        look_at_rows(place, sentence)
        of_all = re.search(r"^explain: loss: ", text, re.M)  # the link's queue drops packets, too
        if kind == "own" and not of_all:
            break
    assert kind == "own" and sentence.startswith(f"{LOSSY} of {FLOWS} flows sent ") and not of_all, text
    assert f"this covers the {FLOWS - LOSSY} flows that got more" in text, text
    return f"{sentence} (attempt {attempt + 1})"


def suite(report: lib.Report) -> None:
    if report.lacks("flows of a link", lib.no_lab() or lib.no_documents()):
        return
    with Lab() as lab, lib.Daemon(prefix=lab.server) as daemon, tempfile.TemporaryDirectory() as place:
        report.case("nothing planted", partial(nothing_planted, lab, daemon.port, place))
        lab.drop(lab.server, DROP)
        report.case("loss of some", partial(loss_of_some, lab, daemon.port, place))


if __name__ == "__main__":
    lib.main(suite)
