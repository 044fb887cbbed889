"""netvm: a qemu guest with a kernel of the distribution and our programs.

modules.py finds the kernel and the dependencies of its modules, image.py makes the initramfs, guest.py runs qemu,
agent.py runs in the guest, suite.py has the guest tests.
"""

from netkit import Fault


class VmError(Fault):
    """What went wrong and what to do, in one line."""
