"""A command on a terminal of known size: what it wrote, and what is on the screen."""

import os
import signal
import time
from typing import Any, Callable, Dict, Optional, Sequence

import lib

pexpect, pyte = lib.needs("pexpect"), lib.needs("pyte")

PATIENCE = 60.0 + lib.SLACK


def heed_signals() -> None:
    """Restore signals that the parent may ignore, such as nohup(1)."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP):
        signal.signal(number, signal.SIG_DFL)


class OnTerminal:
    def __init__(self, command: Sequence[str], rows: int, columns: int, env: "Dict[str, str]",
                 place: Optional[str] = None) -> None:
        self.raw = ""
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        self.child = pexpect.spawn(command[0], list(command[1:]), dimensions=(rows, columns), encoding="utf-8", env=env,
                                   cwd=place, timeout=PATIENCE, preexec_fn=heed_signals)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.close(force=True)

    def read(self) -> bool:
        """Read available output; False at the end."""
        try:
            text = self.child.read_nonblocking(1 << 16, timeout=1)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            # Its child is dead, and poll(2) saw nothing: the kernel may hold what was written last, and read(2) waits for that.
            try:
                text = os.read(self.child.child_fd, 1 << 16).decode(errors="replace")
            except OSError:
                return False
            if not text:
                return False
        self.raw += text
        self._stream.feed(text)
        return True

    def read_until(self, true: "Callable[[], object]", what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < end and self.read(), f"{what} did not come: {self.raw[-2000:]!r}"

    def rest(self) -> int:
        """Read to the end; returns the exit status, or minus the signal."""
        end = time.monotonic() + PATIENCE
        while self.read():
            assert time.monotonic() < end, f"no end in {PATIENCE} s: {self.raw[-2000:]!r}"
        self.child.close()
        return self.child.exitstatus if self.child.exitstatus is not None else -self.child.signalstatus
