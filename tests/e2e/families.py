"""families.py FAMILY,... COMMAND...: runs the command with socket(2) limited to these address families, as by
RestrictAddressFamilies= in systemd.exec(5); others give EAFNOSUPPORT. Needs libseccomp.
"""

import ctypes
import errno
import os
import socket
import sys
from typing import Iterable

FAMILIES = 46  # Linux has no higher numbers
EQUAL = 4
ALLOW = 0x7fff0000
REFUSE = 0x00050000 | errno.EAFNOSUPPORT


class Test(ctypes.Structure):
    """struct scmp_arg_cmp: the argument's index, the comparison, and the operand."""

    _fields_ = [("arg", ctypes.c_uint), ("how", ctypes.c_int),
                ("value", ctypes.c_uint64), ("_", ctypes.c_uint64)]


def library() -> ctypes.CDLL:
    """libseccomp. Raises OSError if it is missing."""
    found = ctypes.CDLL("libseccomp.so.2")
    found.seccomp_init.restype = ctypes.c_void_p
    return found


def keep(names: Iterable[str]) -> None:
    """For this process and its children."""
    seccomp = library()
    filtered = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(ALLOW)))
    call = seccomp.seccomp_syscall_resolve_name(b"socket")
    kept = {int(getattr(socket, name)) for name in names}
    for family in set(range(FAMILIES)) - kept:
        test = Test(0, EQUAL, family, 0)
        if seccomp.seccomp_rule_add_array(filtered, ctypes.c_uint32(REFUSE), call, 1,
                                          ctypes.byref(test)) != 0:
            raise OSError(f"no rule for family {family}")
    if seccomp.seccomp_load(filtered) != 0:
        raise OSError("the kernel takes no filter")


if __name__ == "__main__":
    keep(sys.argv[1].split(","))
    os.execvp(sys.argv[2], sys.argv[2:])
