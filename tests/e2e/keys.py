"""Keys and passphrases: who is admitted and who is not, what each side reports, and where secrets must not appear: in
other users' files, in ps(1), in a session, in recorded messages.
"""

import os
import re
import socket
import struct
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

import lib
import ours

AT_ONCE = 4
FRAME = 656
EACCES = 13
KEY = "correct horse battery staple"
WORD = "open sesame, please"
HELLO, PROOF = 0x504C0001, 0x504C0003

Case = Tuple[str, Callable[[], Optional[str]]]


class Files:
    """Secret files of mode 600, and invalid ones."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.key = self.make("key", f"{KEY}\nand more\n")
        self.same = self.make("same", KEY)
        self.other = self.make("other", KEY + "s")
        self.word = self.make("word", f"{WORD}\n")
        self.other_word = self.make("other_word", "open")

    def make(self, name: str, text: str, mode: int = 0o600) -> str:
        path = self._place / name
        path.touch(0o600)
        path.write_text(text)
        path.chmod(mode)
        return str(path)


def client(port: int, *args: str, test: str = "TCP_RR", program: str = "") -> List[str]:
    length = "1" if test == "UDP_STREAM" else "-10"
    return [program or lib.netperf(), "-H", "127.0.0.1", "-p", str(port), "-t", test, "-l", length,
            *args]


def ask(port: int, *args: str, **more: str) -> lib.Result:
    return lib.run(client(port, *args, **more), timeout=30)


def must_serve(port: int, *args: str, **more: str) -> None:
    got = ask(port, *args, **more)
    assert got.rc == 0 and not got.err, f"{args} {more}: status {got.rc}: {got.err!r}"


def must_refuse(port: int, args: Sequence[str], *says: str, status: int = 255) -> str:
    got = ask(port, *args)
    assert got.rc == status, f"{args}: status {got.rc}: {got.err!r}"
    return lib.error_line(got, "netperf", *says)


# ---- keys ---------------------------------------------------------------------------------------

def by_key(files: Files, *mode: str) -> str:
    """With the key everything works as usual, without it nothing is served."""
    with lib.Daemon(args=["--key-file", files.key, *mode]) as daemon:
        for test in ("TCP_RR", "TCP_STREAM", "UDP_STREAM", "TCP_SENDFILE", "TCP_CC"):
            must_serve(daemon.port, "--key-file", files.same, test=test)
        # A control connection and a proof for each iteration.
        must_serve(daemon.port, "--key-file", files.key, "-i", "3,3", "-I", "95", test="TCP_CRR")
        must_refuse(daemon.port, ["--key-file", files.other], "refuses the key of --key-file",
                    "the same at both ends")
        got = ask(daemon.port)
        assert got.rc == 255 and re.search("Permission denied|--key-file", got.err), got
        got = ask(daemon.port, "-Z", WORD)
        assert got.rc == 255 and re.search("Permission denied|--key-file", got.err), got
        must_serve(daemon.port, "--key-file", files.key)
        log = daemon.log()
    for told in ("wrong key", "request 97 came without the key", "request 6 came without the key"):
        assert told in log, f"{told!r} is not in the log: {log}"
    assert KEY not in log and WORD not in log, log
    return f"{got.err.strip()}"


def by_key_over_ipv6(files: Files) -> None:
    with lib.Daemon(args=["--key-file", files.key]) as daemon:
        got = lib.run(lib.command(daemon.port, "-t", "TCP_RR", "-l", "-10", "--key-file", files.key, host="::1"),
                      timeout=30)
        assert got.rc == 0 and not got.err, got


def key_nobody_wants(files: Files) -> str:
    """The daemon does not know the key: the user is told, and nothing is measured."""
    with lib.Daemon() as daemon:
        line = must_refuse(daemon.port, ["--key-file", files.key], "does not use --key-file",
                           "is it Plumbline's", str(daemon.port))
        must_serve(daemon.port)
    with lib.Daemon(args=["--passphrase-file", files.word]) as daemon:
        must_refuse(daemon.port, ["--key-file", files.key], "does not use --key-file")
    return line


def key_and_real_netserver(files: Files, program: str) -> str:
    with lib.Daemon(program=program, grace=None) as daemon:
        return must_refuse(daemon.port, ["--key-file", files.key], "does not use --key-file",
                           "is it Plumbline's")


def real_netperf_and_key(files: Files, program: str) -> str:
    """A client that does not support keys reports an error with its number."""
    with lib.Daemon(args=["--key-file", files.key]) as daemon:
        for args, test in (((), "TCP_RR"), ((), "TCP_STREAM"), ((), "TCP_SENDFILE"),
                           (("-c", "-C"), "TCP_RR"), (("-Z", WORD), "TCP_RR")):
            got = ask(daemon.port, *args, test=test, program=program)
            assert got.rc not in (0, None), f"{args} {test}: status {got.rc}"
            assert re.search(rf"error {EACCES}\b|Permission denied", got.err + got.out), \
                f"{args} {test}: {got.err!r} {got.out!r}"
        must_serve(daemon.port, "--key-file", files.key)
    return " / ".join(line for line in (got.out + got.err).splitlines() if "error" in line)


# ---- what an eavesdropper may try ---------------------------------------------------------------

def head(message: bytes) -> "Tuple[int, int]":
    assert len(message) == FRAME, f"{len(message)} bytes came"
    code, word = struct.unpack("!Ii", message[:8])
    return code, word


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 60)


class Wiretap(ours.Relay):
    """Records what clients send."""

    heard = b""

    def passes(self, data: bytes, from_client: bool) -> bool:
        if from_client:
            self.heard += data
        return True


def relayed(files: Files) -> str:
    """A relay has other addresses: that is noticed, unless both ends are told that there is a NAT."""
    rows = (  # the daemon's options, the client's, and the error; empty: it is served
        ((), (), "if there is a NAT on the path: --nat"),
        (("--nat",), (), "if there is a NAT on the path: --nat"),
        ((), ("--nat",), "netserver --nat"),
        (("--nat",), ("--nat",), ""),
    )
    for near, far, says in rows:
        with lib.Daemon(args=["--key-file", files.key, *near]) as daemon:
            with Wiretap(daemon.port) as tap:
                args = ["--key-file", files.key, *far]
                if says:
                    line = must_refuse(tap.port, args, says)
                    heard = [head(tap.heard[at:at + FRAME])[0]
                             for at in range(0, len(tap.heard), FRAME)]
                    assert heard in ([HELLO], [HELLO, PROOF]), f"{heard} after a refusal"
                else:
                    must_serve(tap.port, *args)
                    assert KEY.encode() not in tap.heard
            must_serve(daemon.port, "--key-file", files.key)
            if near:
                must_serve(daemon.port, "--key-file", files.key, "--nat")
            assert far or not says or "wrong key, or there is a relay" in daemon.log(), daemon.log()
    return line


# ---- passphrases --------------------------------------------------------------------------------

def by_passphrase(files: Files) -> None:
    for args in (["--passphrase-file", files.word], ["-Z", WORD]):
        with lib.Daemon(args=args) as daemon:
            for own in (["--passphrase-file", files.word], ["-Z", WORD]):
                must_serve(daemon.port, *own)
            must_serve(daemon.port, *own, "-i", "3,3", "-I", "95", test="TCP_CRR")
            must_refuse(daemon.port, ["--passphrase-file", files.other_word], "another passphrase", status=1)
            for own in ([], ["-Z", WORD[:-1]], ["-Z", f"{WORD} "]):
                must_refuse(daemon.port, own, "TCP_RR", str(daemon.port), status=1)
            must_serve(daemon.port, "-Z", WORD)
            assert "wrong passphrase" in daemon.log() and "without the passphrase" in daemon.log(), daemon.log()
    with lib.Daemon() as daemon:
        must_serve(daemon.port, "-Z", WORD)     # the daemon asks for none


def command_line_shows_none(files: Files) -> str:
    with lib.Daemon() as daemon:
        got = ask(daemon.port, "-Z", WORD, "-P", "0", "--", "-o", "COMMAND_LINE")
    assert got.rc == 0 and WORD not in got.out and " -Z * " in got.out, got
    return got.out.strip()


# ---- files and options --------------------------------------------------------------------------

def must_complain(program: str, args: Sequence[str], *says: str) -> None:
    port = str(lib.free_port())
    more = ["-D", "-p", port] if program == "netserver" else ["-H", "127.0.0.1", "-p", port]
    path = lib.netserver() if program == "netserver" else lib.netperf()
    got = lib.run([path, *more, *args], timeout=20)
    assert got.rc == 1 and not got.out, f"{args}: status {got.rc}: {got.out!r} {got.err!r}"
    lib.error_line(got, program, *says)


def files_of_others(files: Files, program: str, option: str) -> None:
    text = KEY if option == "--key-file" else WORD
    few = "16 to 512" if option == "--key-file" else "1 to 647"
    for at, mode in enumerate((0o644, 0o640, 0o604, 0o602, 0o620)):
        path = files.make(f"{program}{option}{at}", text, mode)
        must_complain(program, [option, path], option, path, "chmod 600")
    for at, text in enumerate(("", f"\n{text}", 700 * "x")):
        path = files.make(f"{program}{option}_{at}", text)
        must_complain(program, [option, path], option, path, few)
    must_complain(program, [option, "/nonexistent"], option, "No such file")
    must_complain(program, [option, "/dev/zero"], option, "not a regular file")
    must_complain(program, [option], option, "needs an argument")


def one_of_both(files: Files, program: str) -> None:
    for args in (["-Z", WORD, "--key-file", files.key],
                 ["--key-file", files.key, "--passphrase-file", files.word]):
        must_complain(program, args, "--key-file", "choose one")


def without_libsodium(files: Files, program: str) -> None:
    must_complain(program, ["--key-file", files.key], "--key-file", "libsodium-dev")


# ---- where secrets must not be found ------------------------------------------------------------

def shown(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def must_hide(pid: int, *keep: bytes) -> None:
    """Shortly after its start, a program's arguments show no passphrase, but everything else."""
    def hides() -> bool:
        words = shown(pid)  # empty while the program is loaded
        return not any(word in words for word in WORD.encode().split()) and \
            all(word in words for word in keep)

    assert lib.wait_for(hides, 60), f"{shown(pid)!r} shows {WORD!r}, or not {keep}"


def hidden_words() -> str:
    for args in (["-Z", WORD], [f"-Z{WORD}"], [f"-NZ{WORD}"]):
        with lib.Daemon(args=args) as daemon:
            must_hide(daemon.pid, b"-D", b"-p", str(daemon.port).encode())
            must_serve(daemon.port, "-Z", WORD)
            assert lib.wait_for(lambda: not daemon.children(), 20), "a session stays"
            for more in (["-Z", WORD], ["--passphrase", WORD], [f"--passphrase={WORD}"],
                         [f"-jZ{WORD}"]):
                command = lib.command(daemon.port, *more, "-l", "300", "-t", "TCP_RR", *lib.PACED)
                with lib.Started(command) as started:
                    must_hide(started.pid, b"-l\x00300", b"-t\0TCP_RR")
                    assert lib.wait_for(lambda: len(daemon.children()) > 0, 60), "not served"
                    for pid in daemon.children():
                        must_hide(pid, b"-D")
                    words = shown(started.pid)
                assert lib.wait_for(lambda: not daemon.children(), 20), "a session stays"
    return words.replace(b"\0", b" ").decode().strip()


def memory(pid: int) -> Iterator[bytes]:
    """The writable memory of a process."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            bounds, rights = line.split()[:2]
            if rights.startswith("rw"):
                first, end = (int(word, 16) for word in bounds.split("-"))
                try:
                    mem.seek(first)
                    yield mem.read(end - first)
                except (OSError, ValueError, OverflowError):
                    continue  # not all mappings are readable


def forgotten(option: str, path: str, secret: str, own: Sequence[str]) -> None:
    """The session's process no longer has the secret that its client used; the daemon does."""
    with lib.Daemon(args=[option, path]) as daemon:
        assert any(secret.encode() in part for part in memory(daemon.pid)), "the test is blind"
        # Another client's, most of which has arrived.
        stranger = connect(daemon.port)
        stranger.sendall((b"\0" * 8 + secret.encode()).ljust(FRAME - 1, b"\0"))
        with stranger, lib.Started(lib.command(daemon.port, "-l", "300", "-t", "TCP_RR", *lib.PACED, *own)) as client:
            client.measuring()
            assert len(daemon.children()) == 1, "not served"
            pid = daemon.children()[0]
            found = True
            for _ in range(200):
                found = any(secret.encode() in part for part in memory(pid))
                if not found:
                    break
                time.sleep(0.1)
            assert not found, f"the session's memory holds {option}'s secret"


# ---- all ----------------------------------------------------------------------------------------

# Only root can read a session's memory; sanitizers map more than can be read, and keep freed memory.
MAY_LOOK = os.geteuid() == 0 and not lib.QUICK


def keys(files: Files) -> Iterator[Case]:
    yield "--key-file", partial(by_key, files)
    yield "--key-file, -f", partial(by_key, files, "-f")
    if lib.has_ipv6():
        yield "--key-file over IPv6", partial(by_key_over_ipv6, files)
    yield "a key that nobody wants", partial(key_nobody_wants, files)
    yield "a relayed handshake", partial(relayed, files)
    if MAY_LOOK:
        yield "a session forgets the key", partial(forgotten, "--key-file", files.key, KEY,
                                                   ["--key-file", files.key])
    for program in ("netperf", "netserver"):
        yield f"{program} --key-file of others", partial(files_of_others, files, program,
                                                         "--key-file")
        yield f"{program}: key or passphrase", partial(one_of_both, files, program)


def passphrases(files: Files) -> Iterator[Case]:
    yield "--passphrase-file", partial(by_passphrase, files)
    yield "COMMAND_LINE", partial(command_line_shows_none, files)
    yield "ps(1)", hidden_words
    for program in ("netperf", "netserver"):
        yield f"{program} --passphrase-file of others", partial(files_of_others, files, program,
                                                                "--passphrase-file")
    if MAY_LOOK:
        yield "a session forgets the passphrase", partial(forgotten, "--passphrase-file",
                                                          files.word, WORD, ["-Z", WORD])


def others(report: lib.Report, files: Files) -> Iterator[Case]:
    try:
        place = lib.real_netperf()
    except lib.Skipped as why:
        report.skip("keys and the real netperf", str(why))
        return
    yield "a key and the real netserver", partial(key_and_real_netserver, files,
                                                  str(place / "netserver"))
    yield "the real netperf and a key", partial(real_netperf_and_key, files,
                                                str(place / "netperf"))


def suite(report: lib.Report) -> None:
    lib.netperf(), lib.netserver()  # without them the whole suite is skipped
    os.umask(0o077)
    with tempfile.TemporaryDirectory() as name:
        files = Files(Path(name))
        cases = list(passphrases(files))
        if "libsodium" in lib.run([lib.netperf(), "--key-file", files.key, "-V"], 10).err:
            report.skip("keys", "built without libsodium")
            cases += [(f"{program} --key-file without libsodium",
                       partial(without_libsodium, files, program))
                      for program in ("netperf", "netserver")]
        else:
            cases += [*keys(files), *others(report, files)]
        report.cases(cases, AT_ONCE)


if __name__ == "__main__":
    lib.main(suite)
