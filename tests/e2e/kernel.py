"""kernel.py ANSWER FEATURE[,FEATURE] COMMAND...: runs the command on a kernel without these features: system calls
that use one fail with ANSWER, which is ENOSYS, EPERM or another errno, or KILL, which kills the process by SIGSYS.
All other calls work. Needs libseccomp.
"""

import ctypes
import errno
import os
import sys
from typing import Dict, Iterable, NamedTuple, Tuple

import families

KILL = 0x80000000
REFUSE = 0x00050000  # plus an errno

SOL_SOCKET, SOL_UDP = 1, 17


class Use(NamedTuple):
    """A system call, and required values of its second and third argument, if any."""
    call: str
    arguments: "Tuple[int, ...]" = ()


def options(level: int, *names: int) -> "Tuple[Use, ...]":
    return tuple(Use("setsockopt", (level, name)) for name in names)


# By the engines that use them.
FEATURES: "Dict[str, Tuple[Use, ...]]" = {
    "batch": (Use("sendmmsg"), Use("recvmmsg")),
    "segment": options(SOL_UDP, 103, 104),      # UDP_SEGMENT, UDP_GRO
    "zerocopy": options(SOL_SOCKET, 60),        # SO_ZEROCOPY
    "spin": options(SOL_SOCKET, 46, 69, 70),    # SO_BUSY_POLL, SO_PREFER_BUSY_POLL, SO_BUSY_POLL_BUDGET
    "uring": (Use("io_uring_setup"), Use("io_uring_enter"), Use("io_uring_register")),
}


def lacks() -> str:
    """Why this machine can't simulate that; empty if it can."""
    try:
        families.library()
    except OSError as fault:
        return f"no libseccomp: {fault}"
    return ""


def leave_out(answer: int, uses: "Iterable[Use]") -> None:
    """For this process and its children."""
    seccomp = families.library()
    filtered = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(families.ALLOW)))
    for use in uses:
        call = seccomp.seccomp_syscall_resolve_name(use.call.encode())
        tests = (families.Test * 2)(*[families.Test(1 + i, families.EQUAL, value, 0)
                                      for i, value in enumerate(use.arguments)])
        if seccomp.seccomp_rule_add_array(filtered, ctypes.c_uint32(answer), call, len(use.arguments), tests) != 0:
            raise OSError(f"no rule for {use}")
    if seccomp.seccomp_load(filtered) != 0:
        raise OSError("the kernel takes no filter")


if __name__ == "__main__":
    leave_out(KILL if sys.argv[1] == "KILL" else REFUSE | getattr(errno, sys.argv[1]),
              [use for name in sys.argv[2].split(",") for use in FEATURES[name]])
    os.execvp(sys.argv[3], sys.argv[3:])
