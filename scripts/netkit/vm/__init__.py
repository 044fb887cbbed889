"""netvm: a guest of qemu with a kernel of the distribution's, and our programs in it.

modules.py finds the kernel and what its modules need, image.py makes the initramfs, guest.py runs
qemu, agent.py is what runs in the guest, suite.py the guest tests.
"""

from netkit import Fault


class VmError(Fault):
    """What went wrong and what to do, in one line."""
