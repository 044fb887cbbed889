"""A script's progress on stderr: one line drawn by rich on a terminal and erased at the end, otherwise plain lines."""

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
MARGIN = 4              # columns left free, where the terminal echoes ^C
EVERY = 1.0             # s between updates while something runs: each takes about a millisecond
ENDS = (signal.SIGTERM, signal.SIGHUP)
ERASE = "\r\x1b[2K"

_drawn: "List[Progress]" = []       # the one whose line is on the terminal
_shown: "List[Progress]" = []       # the active one


def add_option(top: Any) -> None:
    top.add_argument("--progress", choices=KINDS, default="auto", help="show on standard error how far it is; auto: "
                     "in a line that is redrawn on a terminal, in plain lines elsewhere; always: redrawn everywhere; "
                     "plain: always plain lines; never: not at all")


def on_terminal(stream: Optional[TextIO] = None) -> bool:
    """Whether it is a terminal on which a line can be redrawn."""
    stream = stream or sys.stderr
    return stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


def colours(stream: TextIO) -> bool:
    return on_terminal(stream) and not os.environ.get("NO_COLOR")


def kind_of(args: argparse.Namespace, note: "Callable[[str], None]") -> str:
    """What --progress means here: bar, plain or never. May restart in another Python, as python.need() does."""
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
    """Erase the line, so that something else can be printed. The next update redraws it."""
    while _drawn:
        _drawn.pop().write(ERASE)


def say(program: str, text: str) -> None:
    """Print a program's message on stderr, above the line."""
    clear()
    print(f"{program}: {printable(text, chr(10))}", file=sys.stderr, flush=True)


def tick() -> None:
    """Update the line, at most once a second. To be called while waiting."""
    for one in _shown:
        one.tick()


@dataclass
class State:
    done: float = 0.0
    total: float = 1.0
    words: str = ""                 # the current activity
    left: Optional[float] = None    # s remaining
    step: float = 0.0               # s that the current activity takes; 0: unknown
    span: float = 1.0               # how much it adds to `done`
    unit: str = ""                  # of done and total
    most: str = "about"             # or "at most", before the remaining time

    def later(self, seconds: float) -> "State":
        """The estimated state some seconds later. Whole units are not counted before the script reports them."""
        most = 1.0 if self.unit else 0.99
        part = min(most, seconds / self.step) * self.span if self.step > 0 else 0.0
        left = None if self.left is None else max(0.0, self.left - seconds)
        return replace(self, done=min(self.total, self.done + part), left=left, step=0.0, span=0.0)

    def text(self) -> str:
        """Such as "3/12, about 4 min to go: size=64"."""
        left = "" if self.left is None else f", {self.most} {show_duration(self.left)} to go"
        unit = f" {self.unit}" if self.unit else ""
        return f"{int(self.done)}/{self.total:.0f}{unit}{left}" + (f": {printable(self.words)}" if self.words else "")


class Steps:
    """Counts steps and estimates the remaining time: steps take as long as those before, initially as expected."""

    def __init__(self, line: "Progress", total: int, expected: Optional[float] = None, most: str = "about") -> None:
        self._line, self._total, self._expected, self._most = line, total, expected, most
        self._since, self._done, self._begun, self._last = time.monotonic(), 0, 0, ""

    def add(self, more: int) -> None:
        self._total += more

    def left(self) -> Optional[float]:
        """Seconds remaining."""
        return self._each() * (self._total - self._done) if self._done else self._expected

    def _each(self) -> float:
        if self._done:
            return (time.monotonic() - self._since) / self._done
        return (self._expected or 0.0) / max(1, self._total)

    def show(self, words: str) -> None:
        """Show the current step, and the result of the one before."""
        told = " | ".join(filter(None, [words, self._last]))
        self._line.show(State(self._done, self._total, told, self.left(), self._each() if words else 0.0, most=self._most))

    def next(self, words: str) -> None:
        """Begin a step, which completes the one before."""
        self._done += self._begun
        self._begun = 1
        self.show(words)


class Progress:
    """A progress line. `kind` is bar (after `after` seconds), plain (every `every` seconds; 0: by line()) or never."""

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
        """A signal ends or stops the script: clear the line first. Python does not allow a nested write."""
        if self in _drawn:
            with contextlib.suppress(OSError, ValueError):
                os.write(self._stream.fileno(), ERASE.encode())
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._obey)       # continued after a stop
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
                _drawn[:] = [self]      # first, as a signal may arrive during the write
                self.write(text)
        elif self.kind == "plain" and self._every and now - self._said >= self._every:
            self._said = now
            self.write(f"{self._name}{self._state.later(now - self._told).text()}\n")

    def _render(self, state: State) -> str:
        """The line, rendered by rich, no wider than the terminal."""
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
        """Whether we are in the foreground: a background job must not write to the terminal."""
        try:
            return os.tcgetpgrp(self._stream.fileno()) == os.getpgrp()
        except (OSError, ValueError):
            return True     # not our controlling terminal

    def write(self, text: str) -> None:
        """Write, ignoring a terminal that is gone, and a signal during another write."""
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self._stream.write(text)
            self._stream.flush()
