"""How far a script is, in one line on standard error: drawn by rich on a terminal and gone without a trace at
the end, else plain lines. There is one standard error, so there is one such line."""

import argparse
import contextlib
import os
import signal
import sys
import time
from dataclasses import dataclass, replace
from typing import Any, Callable, List, Optional, TextIO

from netkit import python
from netkit.units import printable, show_duration

KINDS = ("auto", "always", "never", "plain")
BAR = 20                # columns
MARGIN = 4              # columns that stay free: the terminal shows ^C there
EVERY = 1.0             # s between two drawings while something runs: each costs about a millisecond
ENDS = (signal.SIGTERM, signal.SIGHUP)
ERASE = "\r\x1b[2K"

_drawn: "List[Progress]" = []       # the one whose line is on the terminal now
_shown: "List[Progress]" = []       # the one that is under way


def add_option(top: Any) -> None:
    """To a parser or one of its groups."""
    top.add_argument("--progress", choices=KINDS, default="auto", help="show on standard error how far it is; auto: "
                     "in a line that is redrawn on a terminal, in plain lines elsewhere; always: redrawn everywhere; "
                     "plain: always plain lines; never: not at all")


def on_terminal(stream: Optional[TextIO] = None) -> bool:
    """Whether it is one where a line can be redrawn."""
    stream = stream or sys.stderr
    return stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


def colours(stream: TextIO) -> bool:
    return on_terminal(stream) and not os.environ.get("NO_COLOR")


def kind_of(args: argparse.Namespace, note: "Callable[[str], None]") -> str:
    """What --progress comes to here: bar, plain or never. Another Python may be started, as by python.need()."""
    if args.progress not in ("auto", "always"):
        return args.progress
    if args.progress == "auto" and not on_terminal():
        return "plain"
    try:
        python.need("rich.progress_bar", "python3-rich", "the bar of --progress")
        return "bar"
    except python.MissingModule as fault:
        if args.progress == "always":
            note(str(fault))
        return "plain"


def clear() -> None:
    """Takes the line away, so that something else can be printed. The next drawing brings it back."""
    while _drawn:
        _drawn.pop().write(ERASE)


def say(program: str, text: str) -> None:
    """A line of a program on standard error, above what is drawn."""
    clear()
    print(f"{program}: {printable(text, chr(10))}", file=sys.stderr, flush=True)


def tick() -> None:
    """Time has passed: brings the line up to date, at most once a second. For whoever waits."""
    for one in _shown:
        one.tick()


@dataclass
class State:
    """How far it is."""
    done: float = 0.0
    total: float = 1.0
    words: str = ""                 # what is done now
    left: Optional[float] = None    # s to go
    step: float = 0.0               # s that what is done now takes; 0: not known
    span: float = 1.0               # by how much it adds to `done`
    unit: str = ""                  # of done and total
    most: str = "about"             # or "at most", of the time that is left

    def later(self, seconds: float) -> "State":
        """The same some seconds later. A unit of the count is not done before the script says so."""
        most = 1.0 if self.unit else 0.99
        part = min(most, seconds / self.step) * self.span if self.step > 0 else 0.0
        left = None if self.left is None else max(0.0, self.left - seconds)
        return replace(self, done=min(self.total, self.done + part), left=left, step=0.0, span=0.0)

    def text(self) -> str:
        """ "3/12, about 4 min to go: size=64" """
        left = "" if self.left is None else f", {self.most} {show_duration(self.left)} to go"
        unit = f" {self.unit}" if self.unit else ""
        return f"{int(self.done)}/{self.total:.0f}{unit}{left}" + (f": {printable(self.words)}" if self.words else "")


class Steps:
    """How many of some steps are done, in a line: those to come take as long as those before, at first as expected."""

    def __init__(self, line: "Progress", total: int, expected: Optional[float] = None, most: str = "about") -> None:
        self._line, self._total, self._expected, self._most = line, total, expected, most
        self._since, self._done, self._begun, self._last = time.monotonic(), 0, 0, ""

    def add(self, more: int) -> None:
        """These have to be done, too."""
        self._total += more

    def left(self) -> Optional[float]:
        """Seconds to go."""
        return self._each() * (self._total - self._done) if self._done else self._expected

    def _each(self) -> float:
        if self._done:
            return (time.monotonic() - self._since) / self._done
        return (self._expected or 0.0) / max(1, self._total)

    def show(self, words: str) -> None:
        """The step that is under way, and what became of the one before it."""
        told = " | ".join(filter(None, [words, self._last]))
        self._line.show(State(self._done, self._total, told, self.left(), self._each() if words else 0.0, most=self._most))

    def next(self, words: str) -> None:
        """This step begins, and then the one before it is done."""
        self._done += self._begun
        self._begun = 1
        self.show(words)


class Progress:
    """The line of one script. kind is bar, plain or never; a bar that would be gone at once is not drawn before
    `after` seconds, and `every` is how many seconds lie between two plain lines at least; 0: lines are printed by
    line() alone."""

    def __init__(self, kind: str, name: str = "", after: float = 0.0, every: float = 0.0,
                 stream: Optional[TextIO] = None) -> None:
        self.kind, self._name, self._every, self._stream = kind, name, every, stream or sys.stderr
        now = time.monotonic()
        self._state: Optional[State] = None
        self._told, self._drew, self._said, self._first = now, 0.0, now, now + after
        self._console: Any = None
        self._handlers: "List[Any]" = []

    def __enter__(self) -> "Progress":
        _shown.append(self)
        if self.kind == "bar":
            from rich.console import Console
            self._console = Console(file=self._stream, force_terminal=True, highlight=False, markup=False,
                                    no_color=bool(os.environ.get("NO_COLOR")))
            self._handlers = [number for number in (*ENDS, signal.SIGTSTP)
                              if signal.getsignal(number) == signal.SIG_DFL]
            for number in self._handlers:
                signal.signal(number, self._obey)
        return self

    def __exit__(self, *_: object) -> None:
        if self in _shown:
            _shown.remove(self)
        if self in _drawn:
            clear()
        for number in self._handlers:
            signal.signal(number, signal.SIG_DFL)
        self._handlers = []

    def _obey(self, number: int, _frame: object) -> None:
        """A signal ends or stops the script: the terminal is left clean. Python refuses a write within another one."""
        if self in _drawn:
            with contextlib.suppress(OSError, ValueError):
                os.write(self._stream.fileno(), ERASE.encode())
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._obey)       # it was stopped, and goes on
        self._drew = 0.0

    def show(self, state: State) -> None:
        self._state, self._told = state, time.monotonic()
        self._bring(True)

    def tick(self) -> None:
        self._bring(False)

    def line(self, text: str) -> None:
        if self.kind != "never":
            clear()
            self.write(text + "\n")

    def _bring(self, new: bool) -> None:
        now = time.monotonic()
        if self._state is None:
            return      # nothing has begun
        if self.kind == "bar":
            if now >= self._first and (new or now - self._drew >= 0.9 * EVERY) and self._in_front():
                self._drew = now
                text = ERASE + self._render(self._state.later(now - self._told))
                _drawn[:] = [self]      # first: a signal may come when it is written
                self.write(text)
        elif self.kind == "plain" and self._every and now - self._said >= self._every:
            self._said = now
            self.write(f"{self._name}{self._state.later(now - self._told).text()}\n")

    def _render(self, state: State) -> str:
        """The line, by rich, with no more columns than there are."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text
        width = max(8, self._console.width - MARGIN)
        wide = min(BAR, width // 3)
        text = Text(state.text(), no_wrap=True, overflow="ellipsis")
        text.truncate(width - wide - 1, overflow="ellipsis")
        grid = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
        grid.add_row(ProgressBar(max(state.total, 1e-9), state.done, width=wide), text)
        with self._console.capture() as got:
            self._console.print(grid, width=width, end="")
        return got.get().split("\n")[0].rstrip()

    def _in_front(self) -> bool:
        """A job in the background leaves the terminal to the one in front."""
        try:
            return os.tcgetpgrp(self._stream.fileno()) == os.getpgrp()
        except (OSError, ValueError):
            return True     # it does not control us

    def write(self, text: str) -> None:
        """A terminal that is gone stops nothing, nor does a signal in the middle of another write."""
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self._stream.write(text)
            self._stream.flush()
