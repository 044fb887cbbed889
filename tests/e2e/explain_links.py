"""The links of explain_bed.py: netlab's, and one with a router between the ends."""

import os
from typing import List

import lib
import netns

SIDES = {"near": "client", "far": "server"}
DEVICE = "lab0"


class Lab(lib.Lab):
    """A netlab link between the client's and the server's namespace. Commands enter only the network namespace: `ip
    netns exec` hides the machine's /sys/fs/cgroup."""

    def __init__(self, *link: str) -> None:
        super().__init__(f"explain{os.getpid()}", *netns.CUBIC, *link)
        self.client, self.server = self.enter("near"), self.enter("far")

    def ns(self, end: str) -> str:
        return f"netlab-{self.name}-{SIDES[end]}"

    def enter(self, end: str) -> List[str]:
        return ["nsenter", f"--net=/run/netns/{self.ns(end)}"]


class HidingLab(Lab):
    """As most users do it, with `ip netns exec`, which mounts a new /sys without cgroups."""

    def enter(self, end: str) -> List[str]:
        return ["ip", "netns", "exec", self.ns(end)]


class OneEnd(Lab):
    """Both ends in one namespace, with its loopback interface up."""

    def enter(self, end: str) -> List[str]:
        return super().enter("near")


class RoutedLab(lib.Net, Lab):
    """A router between the ends, whose queues neither end sees. toward_far and toward_near are rates for tc, or none;
    limit is the queue size in bytes."""

    def __init__(self, toward_far: str = "", toward_near: str = "", limit: int = 100_000) -> None:
        Lab.__init__(self)
        self.names = [self.ns(end) for end in ("near", "router", "far")]
        self.rates = {"right": toward_far, "left": toward_near}
        self.limit = limit

    def ns(self, end: str) -> str:
        return f"{self.name}-router" if end == "router" else super().ns(end)

    def make(self) -> None:
        self._join("near", "left", "10.77.1.1", "10.77.1.2")
        self._join("far", "right", "10.77.0.2", "10.77.0.1")
        lib.must([*self.enter("router"), "sysctl", "-q", "net.ipv4.ip_forward=1"])
        for device, rate in self.rates.items():
            if rate:
                lib.must(["tc", "-n", self.ns("router"), "qdisc", "add", "dev", device, "root",
                          "tbf", "rate", rate, "burst", "5000", "limit", str(self.limit)])

    def _join(self, end: str, device: str, address: str, gateway: str) -> None:
        here, router = self.ns(end), self.ns("router")
        lib.ip(f"link add {DEVICE} netns {here} type veth peer name {device} netns {router}")
        for space, name, own in ((here, DEVICE, address), (router, device, gateway)):
            lib.ip(*(f"-n {space} {words}" for words in (
                f"link set {name} gso_max_segs 1 gso_max_size 2000", f"addr add {own}/24 dev {name}", f"link set {name} up")))
            lib.must(["ip", "netns", "exec", space, "ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off"])
        lib.ip(f"-n {here} route add default via {gateway} congctl cubic")
