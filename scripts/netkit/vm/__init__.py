"""netvm: a qemu guest with the distribution's kernel and our programs. agent.py runs in it, the rest here."""

from netkit import Fault


class VmError(Fault):
    """What went wrong and what to do, in one line."""
