#!/usr/bin/env python3
"""Plays the exchanges of doc/protocol.md against our daemon: they are what the programs say, byte for byte."""

import contextlib
import os
import re
import socket
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
import lib  # noqa: E402

HOST, SIZE, PATIENCE = "127.0.0.1", 656, 60
ANY = "........"                                # a word that differs
NAMED = {"port": 4, "path": 32, "text": 200}    # fields that differ, and their bytes
Where = Tuple[socket.AddressFamily, object]


class Step(NamedTuple):
    kind: str               # -> to the daemon, <- from it, == over the data connection
    text: str
    words: "Dict[int, str]"     # of a message, by offset: eight digits, or ANY
    named: "Dict[str, int]"     # where a field of NAMED begins


def step(kind: str, text: str, lines: str) -> Step:
    made = Step(kind, text, {}, {})
    for line in lines.splitlines():
        at, *words = line.split()
        offset = int(at)
        for word in words:
            if word in NAMED:
                made.named[word] = offset
            for _ in range(NAMED.get(word, 4) // 4):
                made.words[offset] = ANY if word in NAMED else word
                offset += 4
    return made


def exchanges(document: str) -> "Dict[str, List[Step]]":
    part = re.search(r"^## Exchanges$(.*?)(?=^## )", document, re.M | re.S)
    assert part, "no exchanges"
    return {title: [step(*row) for row in re.findall(r"^    (->|<-|==) (.*)\n((?:    \d{3} .*\n)*)", block, re.M)]
            for title, block in re.findall(r"^### (.*?)$\n(.*?)(?=^### |\Z)", part[1], re.M | re.S)}


def bytes_of(request: Step) -> bytes:
    frame = bytearray(SIZE)
    for offset, word in request.words.items():
        frame[offset:offset + 4] = bytes.fromhex(word)
    return bytes(frame)


def compare(told: Step, frame: bytes) -> None:
    assert len(frame) == SIZE, f"closed after {len(frame)} bytes of a message"
    for offset in range(0, SIZE, 4):
        want, got = told.words.get(offset, 8 * "0"), frame[offset:offset + 4].hex()
        assert want in (ANY, got), f"offset {offset}: {got}, the document has {want}"


def where_of(response: Step, frame: bytes) -> "Optional[Where]":
    for name, at in response.named.items():
        field = frame[at:at + NAMED[name]]
        if name == "port":
            return socket.AF_INET, (HOST, int.from_bytes(field, "big"))
        if name == "path":      # a text4
            words = [field[i:i + 4][::-1 if sys.byteorder == "little" else 1] for i in range(0, len(field), 4)]
            return socket.AF_UNIX, b"".join(words).split(b"\0")[0].decode()
    return None


def move(text: str, where: Where) -> None:
    """What happens over the data connection, such as "10 requests of 1 byte over a stream"."""
    match = re.match(r"(\d+) (bytes|requests|connections|datagrams)(?: of (\d+) bytes?)? over (a stream|datagrams)", text)
    assert match, text
    count, what, size, stream = int(match[1]), match[2], int(match[3] or 1), match[4] == "a stream"
    for _ in range(count if what == "connections" else 1):
        with socket.socket(where[0], socket.SOCK_STREAM if stream else socket.SOCK_DGRAM) as data, \
                tempfile.TemporaryDirectory() as place:
            data.settimeout(PATIENCE)
            if where[0] == socket.AF_UNIX and not stream:
                data.bind(f"{place}/socket")    # for responses
                os.chmod(place, 0o711)
                os.chmod(f"{place}/socket", 0o777)
            data.connect(where[1])
            for _ in range(count if what in ("datagrams", "requests") else 0):
                data.send(bytes(size))
                assert what == "datagrams" or len(data.recv(size)) == size
            if what == "bytes":
                data.sendall(bytes(count))
            if stream:
                data.shutdown(socket.SHUT_WR)
                assert not data.recv(1), "more data"
            with contextlib.suppress(OSError):  # the first mark may have ended it
                for _ in range(3 if "three empty" in text else 0):
                    data.send(b"")


def play(steps: "List[Step]", port: int) -> None:
    where: "Optional[Where]" = None
    with socket.create_connection((HOST, port), PATIENCE) as control:
        for one in steps:
            if one.kind == "->":
                control.sendall(bytes_of(one))
            elif one.kind == "<-":
                frame = control.recv(SIZE, socket.MSG_WAITALL)
                compare(one, frame)
                where = where_of(one, frame) or where
            elif one.text == "closed":
                assert not control.recv(1), "the daemon says more"
            else:
                assert where, "no response before the data"
                move(one.text, where)


def each_has_one(document: str) -> None:
    """Of each request in the tables, but that without an answer."""
    wanted = set(map(int, re.findall(r"^### .* request \((\d+)\)", document, re.M))) - {6}
    codes = {int(steps[0].words[0], 16) for steps in exchanges(document).values()}
    assert wanted and wanted <= codes, f"no exchange begins with {sorted(wanted - codes)}"


def suite(report: lib.Report) -> None:
    document = (lib.TOP / "doc" / "protocol.md").read_text()
    for args in ([], ["--one-port"]):
        with lib.Daemon(args=args) as daemon:
            for title, steps in exchanges(document).items():
                report.case(" ".join([title, *args]), partial(play, steps, daemon.port))
    report.case("each dialect has one", partial(each_has_one, document))


if __name__ == "__main__":
    lib.main(suite)
