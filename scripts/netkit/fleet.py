"""Commands at many hosts at the same time, all held by one event loop. Each ends when its standard input does, and so with us,
whatever ends us and whatever is between."""

import asyncio
import contextlib
import functools
import os
import sys
import tempfile
import time
from typing import Any, Awaitable, BinaryIO, List, NamedTuple, Optional, Sequence

from netkit import machine, progress
from netkit.engines import Engine

DOCUMENT = "--json=/dev/fd/9"
THERE_S = 10        # seconds for a host to be reached
PREPARED_S = 15     # and for a command there to be ready to begin
WORDS_MOST = 300    # characters of a complaint
LATE_S = 25         # before a limit: what still runs then runs at a host that has to answer
ANSWER_S = 5        # within this time
LINE_MOST = 4096    # characters of a line, which is empty or a path
TURN_S = 0.1        # between two looks for a signal
AT_ONCE = 50        # hosts that are being reached

# At a host: a command that begins when a line comes on its standard input, which it asks for by an empty line and answers by one,
# and is ended when that input is closed. With a document its standard output is followed by a 0 byte and the document, from a
# file that has no name any more. No process of it is an orphan: the first one of a container may collect none.
RUN = """PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; exec 3<&0; f=$1; shift
echo; read -r go <&3 || exit 143; echo
if [ "$f" ]; then f=$(mktemp) && exec 8<"$f" 9>"$f" && rm -f "$f" || exit 125; fi
"$@" </dev/null 3<&- & p=$!
{ while read -r _ <&3; do :; done; kill "$p"; sleep 2 & trap 'kill $!; wait $!; exit' TERM; wait $!; kill -9 "$p"; } >/dev/null 2>&1 8<&- 9>&- & w=$!
wait "$p"; s=$?
kill "$w"; wait "$w" 2>/dev/null
if [ "$f" ]; then printf '\\0'; cat <&8; fi
exit "$s"
"""

# At a host: a folder for a tar file of that many bytes; it is named, and removed when standard input ends or a signal says so.
KEEP = """echo; d=$(mktemp -d) || exit; trap 'rm -rf "$d"' EXIT; trap 'exit 143' HUP INT TERM
head -c "$1" | tar -xo -C "$d" -f - && echo "$d" && cat >/dev/null
"""


class Way(NamedTuple):
    """How a command gets to a host, and what the program is called there."""
    engine: Engine
    name: str
    program: str

    def words(self, command: Sequence[str], document: bool = False) -> "List[str]":
        more = [DOCUMENT] * document
        return self.engine.command(self.name, ["sh", "-c", RUN, "sh", "document" if document else "", self.program, *more, *command[1:]])


class Command:
    """Of RUN or KEEP. Of what it prints there is a most, since another host has that in its hands."""

    def __init__(self, words: Sequence[str], most: int = machine.ANSWER_MOST, probe: Sequence[str] = ()) -> None:
        self._words, self._most, self._probe = words, most, probe
        self._out, self._err = tempfile.TemporaryFile(), bytearray()
        self._process: "Optional[asyncio.subprocess.Process]" = None
        self._tasks: "List[asyncio.Future[Any]]" = []
        self._since = time.monotonic()
        self.lines: "List[bytes]" = []      # the first two
        self.begun: Optional[float] = None  # when the second one came
        self.reason = ""

    async def start(self) -> None:
        """Raises MachineError."""
        self._more = asyncio.Event()
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *self._words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                start_new_session=True, preexec_fn=machine.free_signals)
        except OSError as fault:
            why = "not installed here" if isinstance(fault, FileNotFoundError) else fault.strerror
            raise machine.MachineError(f"{self._words[0]}: {why}") from None
        self._tasks = [asyncio.ensure_future(one) for one in (self._take(process.stdout), self._complain(process.stderr))]

    async def _take(self, stream: Any) -> None:
        head, left = b"", self._most
        while True:
            piece = await stream.read(1 << 16)
            left -= len(piece)
            if not piece or left < 0:
                break
            while len(self.lines) < 2 and piece:
                line, newline, piece = piece.partition(b"\n")
                head = (head + line)[:LINE_MOST]
                if newline:
                    self.lines, head, self.begun = [*self.lines, head], b"", time.monotonic()
                    self._more.set()
            if not self._out.closed:
                self._out.write(piece)
        if left < 0:
            self.fail(f"more than {self._most >> 10} KiB came, which is the most that is read")
        self._more.set()

    async def _complain(self, stream: Any) -> None:
        while True:
            piece = await stream.read(1 << 16)
            if not piece:
                return
            self._err += piece[:max(0, machine.COMPLAINT_MOST - len(self._err))]

    def fail(self, reason: str) -> None:
        """It is ended, and this is why."""
        self.reason = self.reason or reason
        if self._process and self._process.returncode is None:
            self._process.kill()

    async def said(self, count: int, limit: float) -> bytes:
        """The line of this number; only KEEP says something in one. Raises MachineError."""
        end = time.monotonic() + limit
        while len(self.lines) < count:
            self._more.clear()
            if self._tasks[0].done():
                await asyncio.wait(self._tasks, timeout=1)
                raise machine.MachineError(self.reason or self.complaint() or "no answer")
            try:
                await asyncio.wait_for(self._more.wait(), max(0.0, end - time.monotonic()))
            except asyncio.TimeoutError:
                raise machine.MachineError(f"no answer within {limit:g} s") from None
        return self.lines[count - 1].strip()

    def write(self, data: bytes) -> None:
        assert self._process and self._process.stdin
        with contextlib.suppress(OSError, RuntimeError):
            self._process.stdin.write(data)

    def complaint(self) -> str:
        """The last line of its standard error so far."""
        lines = self._err.decode(errors="replace").strip().splitlines()
        return lines[-1][:WORDS_MOST] if lines else ""

    def ended(self) -> bool:
        return self._process is None or self._process.returncode is not None

    async def wait(self, limit: float) -> None:
        """Until it has ended, or is ended since the time is over."""
        assert self._process
        all_of_it = [*self._tasks, asyncio.ensure_future(self._process.wait())]
        _, late = await asyncio.wait(all_of_it, timeout=max(0.0, limit - LATE_S) if self._probe else limit)
        if late and self._probe:
            asked = Command(self._probe)
            try:
                await asked.start()
                await asked.wait(ANSWER_S)
            except machine.MachineError as fault:
                asked.fail(str(fault))
            if asked.done().exit != 0:
                self.fail(f"its host does not answer any more: {asked.reason or asked.complaint()}")
            _, late = await asyncio.wait(late, timeout=LATE_S)
        if late:
            self.reason = self.reason or f"did not end within {limit:.0f} s"
            await self.end(keep=True)

    async def end(self, patience: float = 4.0, keep: bool = False) -> None:
        """By the end of its standard input, or else of what holds that. Its output is kept for done()."""
        if not keep:
            self._out.close()
        if not self._process:
            return
        process = self._process
        assert process.stdin
        process.stdin.close()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), patience)
        if process.returncode is None:
            process.kill()
            await process.wait()
        await asyncio.wait(self._tasks, timeout=1)
        for task in self._tasks:
            task.cancel()

    def done(self, document: "Optional[BinaryIO]" = None) -> machine.Done:
        """What became of it; its document goes into this file."""
        self._out.seek(0)
        out, zero, found = self._out.read().partition(b"\0") if document else (self._out.read(), b"", b"")
        self._out.close()
        if document and zero:
            document.write(found)
        seconds = round(time.monotonic() - (self.begun or self._since), 3)
        code = self._process.returncode if self._process and not self.reason else None
        return machine.Done(code, out.decode(errors="replace"), self._err.decode(errors="replace"), seconds, self.reason)


async def together(commands: "Sequence[Command]", limit: float) -> None:
    """Has those of RUN begin at the same moment, when all are prepared, and waits for their ends. What fails has its reason."""
    async def prepared(command: Command) -> None:
        try:
            await command.start()
            await command.said(1, PREPARED_S)
        except machine.MachineError as fault:
            if not command.ended() or not command.complaint():
                command.fail(str(fault))

    try:
        await asyncio.gather(*map(prepared, commands))
        for command in commands:
            if not command.ended() and not command.reason:
                command.write(b"\n")
        await asyncio.gather(*(command.wait(limit) for command in commands if command.lines))
    finally:
        await asyncio.gather(*(command.end(keep=True) for command in commands))


class Loop:
    """Runs what is asynchronous while all else waits; signals are looked for. Processes stay its own between two runs."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        if sys.version_info < (3, 12):      # as later ones do by themselves, without a thread for each process
            with contextlib.suppress(OSError, AttributeError):
                os.close(os.pidfd_open(os.getpid()))
                watcher = asyncio.PidfdChildWatcher()
                watcher.attach_loop(self._loop)
                asyncio.set_child_watcher(watcher)

    def run(self, *works: "Awaitable[Any]", heed: bool = True) -> "List[Any]":
        """These side by side: what they gave, or the MachineError that they raised. Raises Interrupted, with all of them cancelled."""
        return list(self._loop.run_until_complete(self._all(works, heed)))

    async def _all(self, works: "Sequence[Awaitable[Any]]", heed: bool) -> "List[Any]":
        tasks = [asyncio.ensure_future(one) for one in works]
        try:
            pending = set(tasks)
            while pending:
                _, pending = await asyncio.wait(pending, timeout=TURN_S)
                if heed:
                    machine.check()
                progress.tick()
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        found = [task.exception() or task.result() for task in tasks]
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, machine.MachineError):
                raise one
        return found


@functools.lru_cache(maxsize=None)
def loop() -> Loop:
    return Loop()
