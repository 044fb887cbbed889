#!/usr/bin/env python3
"""Replays the exchanges in doc/protocol.md with our daemon and our client: they match byte for byte."""

import contextlib
import hmac
import os
import re
import socket
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
import lib
import ours

HOST, SIZE, PATIENCE = "127.0.0.1", 656, 60
ANY = "........"                                # a word that may differ
REST = "..."                                    # and the rest of the message
NAMED = {"port": 4, "path": 32, "text": 200, "token": 16, REST: 0}      # fields that may differ, and their sizes in bytes
AT_ONE_PORT = "at one port"                     # in titles of exchanges with --one-port
Where = Tuple[socket.AddressFamily, object]


class Step(NamedTuple):
    kind: str               # -> to the daemon, <- from the daemon, == on the data connection
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
        frame[offset:offset + 4] = bytes.fromhex(word.replace(".", "0"))
    return bytes(frame[:size_of(frame[:8])])


def size_of(head: bytes) -> int:
    """The size of a message that begins with these bytes."""
    return 8 + int.from_bytes(head[4:], "big") if int.from_bytes(head[:4], "big") >> 4 == ours.PLAN >> 4 else SIZE


def message_from(control: socket.socket) -> bytes:
    head = control.recv(8, socket.MSG_WAITALL)
    return head + control.recv(size_of(head) - len(head), socket.MSG_WAITALL)


def compare(told: Step, frame: bytes) -> None:
    assert len(frame) == size_of(frame[:8]), f"closed after {len(frame)} bytes of a message"
    for offset in range(0, told.named.get(REST, len(frame)), 4):
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


def move(text: str, where: Where, token: bytes) -> None:
    """Carry out a step on the data connection, such as "10 requests of 1 byte over a stream"."""
    match = re.match(r"(?:(.{17}) and the token, answered by (.{17}) and 16 zeros; )?"
                     r"(\d+) (bytes|requests|connections|datagrams)(?: of (\d+) bytes?)? over (a stream|this stream|datagrams)", text)
    assert match, text
    count, what, size, stream = int(match[3]), match[4], int(match[5] or 1), match[6] != "datagrams"
    for _ in range(count if what == "connections" else 1):
        with socket.socket(where[0], socket.SOCK_STREAM if stream else socket.SOCK_DGRAM) as data, \
                tempfile.TemporaryDirectory() as place:
            data.settimeout(PATIENCE)
            if where[0] == socket.AF_UNIX and not stream:
                data.bind(f"{place}/socket")    # for responses
                os.chmod(place, 0o711)
                os.chmod(f"{place}/socket", 0o777)
            data.connect(where[1])
            if match[1]:
                data.sendall(bytes.fromhex(match[1]) + token)
                assert data.recv(24, socket.MSG_WAITALL) == bytes.fromhex(match[2]) + bytes(16), "another answer to the token"
            for number in range(count if what in ("datagrams", "requests") else 0):
                sent = (number if "which begin with" in text else 0).to_bytes(min(size, 4), "big").ljust(size, b"\0")
                data.send(sent)
                got = data.recv(size) if what == "requests" else sent
                assert len(got) == size and ("begins so" not in text or got[:4] == sent[:4]), got
            if what == "bytes":
                data.sendall(bytes(count))
            if stream:
                data.shutdown(socket.SHUT_WR)
                assert not data.recv(1), "more data"
            with contextlib.suppress(OSError):  # the first end mark may have ended it
                for _ in range(3 if "three empty" in text else 0):
                    data.send(b"")


def play(steps: "List[Step]", port: int) -> None:
    where: "Optional[Where]" = None
    token = b""
    with socket.create_connection((HOST, port), PATIENCE) as control:
        for one in steps:
            if one.kind == "->":
                control.sendall(bytes_of(one))
            elif one.kind == "<-":
                frame = message_from(control)
                compare(one, frame)
                where = where_of(one, frame) or where
                at = one.named.get("token", SIZE)
                token = frame[at:at + NAMED["token"]] or token
            elif one.text == "closed":
                assert not control.recv(1), "the daemon says more"
            else:
                assert where, "no response before the data"
                move(one.text, where, token)


def our_client_says_so(steps: "List[Step]") -> None:
    """Compare our client, up to the last request before the data phase, with a server that answers from the document.
    """
    before = steps[:next(number for number, one in enumerate(steps) if one.kind == "==") - 1]
    with socket.create_server((HOST, 0)) as server:
        words = [*steps[0].text.split()[1:], "-p", str(server.getsockname()[1])]
        with lib.Started([lib.netperf(), "-H", HOST, *words[-2:], *words[:-2]]):
            server.settimeout(PATIENCE)
            control, _ = server.accept()
            with control:
                for one in before:
                    if one.kind == "->":
                        compare(one, message_from(control))
                    else:
                        control.sendall(bytes_of(one))


def proof(key: bytes, side: str, *parts: bytes) -> bytes:
    return hmac.new(key, b"plumbline auth 2 " + side.encode() + b"".join(parts), "sha256").digest()


def a_key_is_proved(document: str) -> None:
    """With the numbers in the document, and with our daemon."""
    told = dict(re.findall(r"^ {8}(C|S|ends|client|server) +([0-9a-f ]{64,})$", document, re.M))
    key, size = b"0123456789abcdef", 12
    for side in ("client", "server"):
        assert proof(key, side, *(bytes.fromhex(told[part]) for part in ("C", "S", "ends"))).hex() == told[side], side
    with tempfile.NamedTemporaryFile() as kept:
        Path(kept.name).write_bytes(key + b"\n")
        if "libsodium" in lib.run([lib.netserver(), "--key-file", kept.name, "-V"], 10).err:
            raise lib.Skipped("built without libsodium")
        with lib.Daemon(args=["--key-file", kept.name]) as daemon, \
                socket.create_connection((HOST, daemon.port), PATIENCE) as control:
            near, far = (b"\4" + socket.inet_aton(at[0]) + bytes(12) + at[1].to_bytes(2, "big")
                         for at in (control.getsockname(), control.getpeername()))
            mine = os.urandom(32)
            control.sendall(ours.frame(0x504c0001, -1, ours.word(2) + mine))
            challenge = message_from(control)
            assert challenge[:size] == bytes.fromhex("504c0002 00000000 00000002"), challenge[:size]
            parts = (mine, challenge[size:size + 32], near, far)
            control.sendall(ours.frame(0x504c0003, -1, ours.word(2) + proof(key, "client", *parts)))
            welcome = message_from(control)
            assert welcome[:size + 32] == bytes.fromhex("504c0004 00000000 00000002") + proof(key, "server", *parts), welcome[:size + 32]


def each_has_one(document: str) -> None:
    """Each request in the tables has an exchange, except the one without an answer."""
    wanted = set(map(int, re.findall(r"^### .* request \((\d+)\)", document, re.M))) - {6}
    codes = {int(steps[0].words[0], 16) for steps in exchanges(document).values()}
    assert wanted and wanted <= codes, f"no exchange begins with {sorted(wanted - codes)}"


def suite(report: lib.Report) -> None:
    document = (lib.TOP / "doc" / "protocol.md").read_text()
    for args in ([], ["--one-port"]):
        with lib.Daemon(args=args) as daemon:
            for title, steps in exchanges(document).items():
                shows = steps[0].text.startswith("netperf")     # with --one-port, it shows tokens
                if not shows or (AT_ONE_PORT in title) == bool(args):
                    report.case(" ".join([title, *args]), partial(play, steps, daemon.port))
                if shows and args:
                    report.case(f"{title}: our client", partial(our_client_says_so, steps))
    report.each((a_key_is_proved, each_has_one), document)


if __name__ == "__main__":
    lib.main(suite)
