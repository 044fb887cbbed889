"""netvm: a guest of qemu with a kernel of the distribution's, and our programs in it.

modules.py finds the kernel and what its modules need, image.py makes the initramfs, guest.py runs
qemu, agent.py is what runs in the guest, suite.py the guest tests.
"""


class VmError(Exception):
    """What went wrong and what to do, in one line."""
    status = 1


class UsageError(VmError):
    """An option's value that cannot be meant."""
    status = 2
