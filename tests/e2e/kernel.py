"""kernel.py ANSWER FEATURE[,FEATURE] COMMAND...: runs the command on a kernel without these features: system calls
that use one fail with ANSWER, which is ENOSYS, EPERM or another errno, or KILL, which kills the process by SIGSYS.
All other calls work. other-than:AF_INET:AF_INET6, as a feature, are sockets of other address families, as those that
RestrictAddressFamilies= in systemd.exec(5) refuses. Needs libseccomp.
"""

import ctypes
import errno
import os
import socket
import sys
from typing import Dict, Iterable, NamedTuple, Tuple

ALLOW = 0x7fff0000
KILL = 0x80000000
REFUSE = 0x00050000  # plus an errno
EQUAL = 4
ADDRESS_FAMILIES = range(46)  # Linux has no higher numbers

SOL_SOCKET, SOL_UDP = 1, 17


class Use(NamedTuple):
    """A system call, and required values of its second and third argument, or from another one on."""
    call: str
    arguments: "Tuple[int, ...]" = ()
    first: int = 1


class Test(ctypes.Structure):
    """struct scmp_arg_cmp: the argument's index, the comparison, and the operand."""

    _fields_ = [("arg", ctypes.c_uint), ("how", ctypes.c_int),
                ("value", ctypes.c_uint64), ("_", ctypes.c_uint64)]


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


def uses(feature: str) -> "Tuple[Use, ...]":
    name, *families = feature.split(":")
    if name != "other-than":
        return FEATURES[feature]
    kept = {int(getattr(socket, family)) for family in families}
    return tuple(Use("socket", (family,), 0) for family in ADDRESS_FAMILIES if family not in kept)


def library() -> ctypes.CDLL:
    found = ctypes.CDLL("libseccomp.so.2")
    found.seccomp_init.restype = ctypes.c_void_p
    return found


def lacks() -> str:
    """Why this machine can't simulate that; empty if it can."""
    try:
        library()
    except OSError as fault:
        return f"no libseccomp: {fault}"
    return ""


def without(answer: str, features: str) -> "list[str]":
    """The command prefix for a kernel without these features."""
    return [sys.executable, __file__, answer, features]


def leave_out(answer: int, uses: "Iterable[Use]") -> None:
    """For this process and its children."""
    seccomp = library()
    filtered = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(ALLOW)))
    for use in uses:
        call = seccomp.seccomp_syscall_resolve_name(use.call.encode())
        tests = (Test * 2)(*[Test(use.first + i, EQUAL, value, 0) for i, value in enumerate(use.arguments)])
        if seccomp.seccomp_rule_add_array(filtered, ctypes.c_uint32(answer), call, len(use.arguments), tests) != 0:
            raise OSError(f"no rule for {use}")
    if seccomp.seccomp_load(filtered) != 0:
        raise OSError("the kernel takes no filter")


if __name__ == "__main__":
    leave_out(KILL if sys.argv[1] == "KILL" else REFUSE | getattr(errno, sys.argv[1]),
              [use for feature in sys.argv[2].split(",") for use in uses(feature)])
    os.execvp(sys.argv[3], sys.argv[3:])
