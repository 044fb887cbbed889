"""The kernel of a guest and its modules."""

import glob
import gzip
import lzma
import os
import re
import subprocess
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Optional, Set

from netkit import UsageError, files
from netkit.vm import VmError

INSTALL = "scripts/install-needed vm gets what is needed on Debian"

# Modules that a guest needs to boot, in loading order.
START = ("virtio_pci", "virtio_console")

# Modules in every guest, loaded on demand; some kernels lack some of them.
USUAL = (
    "sctp", "sctp_diag", "dccp", "dccp_ipv4", "dccp_ipv6", "dccp_diag", "dccp_tfrc_lib", "llc2", "psnap", "tls",
    "vsock", "vsock_loopback", "vsock_diag", "vmw_vsock_virtio_transport", "mptcp_diag", "tcp_diag", "udp_diag",
    "af_packet_diag", "unix_diag", "netlink_diag", "veth", "dummy", "tun", "ifb", "bridge", "8021q",
    "sch_netem", "sch_fq", "sch_fq_codel", "sch_tbf", "sch_htb", "sch_prio", "sch_ingress", "cls_u32", "cls_matchall",
    "act_mirred", "act_police", "tcp_bbr", "nf_tables", "nft_numgen", "nft_limit", "nft_quota", "nft_ct",
    "nft_reject_inet", "nft_log", "nfnetlink_queue", "nft_queue",
    "crc32c_generic", "crc32c_intel", "gcm", "ccm", "ctr", "cmac", "hmac", "sha256_generic", "aes_generic",
    "aesni_intel", "ghash_generic", "ghash_clmulni_intel", "chacha20poly1305", "chacha_generic", "poly1305_generic",
    "chacha_x86_64", "poly1305_x86_64", "xfrm_user", "esp4", "udp_tunnel")


def plain(name: str) -> str:
    """A module's name in the kernel's spelling."""
    return name.replace("-", "_")


def content(path: str) -> bytes:
    if path.endswith(".zst"):
        try:
            return subprocess.run(["zstd", "-dcq", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  check=True, timeout=60).stdout
        except (OSError, subprocess.SubprocessError):
            raise VmError(f"{path} is compressed, and zstd could not read it: install zstd") from None
    with open(path, "rb") as file:
        data = file.read()
    unpack = {".xz": lzma.decompress, ".gz": gzip.decompress}.get(os.path.splitext(path)[1])
    return unpack(data) if unpack else data


@dataclass
class Module:
    """A module: its file's contents, and its .modinfo section."""
    name: str
    place: str      # in the guest, below lib/modules/VERSION
    data: bytes
    needs: "List[str]" = field(default_factory=list)
    likes: "List[str]" = field(default_factory=list)    # soft dependencies
    aliases: "List[str]" = field(default_factory=list)

    def __post_init__(self) -> None:
        for key, value in re.findall(rb"\0(depends|alias|softdep)=([^\0]*)", self.data):
            text = value.decode("ascii", "replace")
            if key == b"depends":
                self.needs = [plain(one) for one in text.split(",") if one]
            elif key == b"alias":
                self.aliases.append(text)
            else:
                self.likes += [plain(one) for one in text.split() if not one.endswith(":")]


class Kernel:
    def __init__(self, image: str) -> None:
        self.image = os.path.abspath(image)
        name = os.path.basename(image)
        if not name.startswith("vmlinuz-"):
            raise UsageError(f"kernel {image}: its name does not say its version (vmlinuz-VERSION)")
        self.version = name[len("vmlinuz-"):]
        beside = os.path.join(os.path.dirname(self.image), "..", "lib", "modules", self.version)
        self.folder = beside if os.path.isdir(beside) else os.path.join("/lib/modules", self.version)
        if not os.path.isdir(os.path.join(self.folder, "kernel")):
            raise VmError(f"no modules of {self.image} in {os.path.normpath(self.folder)}: {INSTALL}")
        self.files = {plain(name.split(".ko")[0]): os.path.join(place, name)
                      for place, _, names in os.walk(os.path.join(self.folder, "kernel"))
                      for name in names if ".ko" in name}
        self.read: "Dict[str, Module]" = {}

    def built_in(self, name: str) -> bool:
        lines = files.content(os.path.join(self.folder, "modules.builtin")).splitlines()
        return any(plain(os.path.basename(line.strip())) == plain(name) + ".ko" for line in lines)

    def module(self, name: str) -> "Optional[Module]":
        name = plain(name)
        if name not in self.files:
            return None
        if name not in self.read:
            path = self.files[name]
            place = os.path.relpath(path, self.folder)
            self.read[name] = Module(name, place[:place.rindex(".ko") + 3], content(path))
        return self.read[name]

    def closure(self, name: str) -> "List[Module]":
        """A module, followed by its dependencies: the reverse of the loading order."""
        seen: "Set[str]" = set()
        found: "List[Module]" = []

        def visit(one: str) -> None:
            module = self.module(one)
            if module and one not in seen:
                seen.add(one)
                for needed in module.needs:
                    visit(needed)
                found.insert(0, module)

        visit(plain(name))
        return found

    def wanted(self, names: "Iterable[str]") -> "List[Module]":
        """The default modules and the named ones, with dependencies. Named ones must exist."""
        for name in names:
            if plain(name) not in self.files and not self.built_in(name):
                raise VmError(f"no module {name} in kernel {self.version}")
        found: "Dict[str, Module]" = {}
        for name in (*START, *USUAL, *names):
            for module in self.closure(name):
                found[module.name] = module
        for name in {like for module in list(found.values()) for like in module.likes}:
            for one in (name, name + "_generic"):
                found.update((module.name, module) for module in self.closure(one))
        missing = [name for name in START if name not in found and not self.built_in(name)]
        if missing:
            raise VmError(f"kernel {self.version} has no {missing[0]}, by which netvm speaks to a guest")
        return list(found.values())

    def index(self, modules: "List[Module]") -> "Dict[str, bytes]":
        """The index files of modprobe for these modules."""
        depend = "".join(f"{one.place}: {' '.join(need.place for need in self.closure(one.name)[1:])}\n"
                         for one in modules)
        aliases = "".join(f"alias {alias} {one.name}\n" for one in modules for alias in one.aliases)
        return {"modules.dep": depend.encode(), "modules.alias": aliases.encode(), "modules.symbols": b""}


def by_version(path: str) -> "List[int]":
    return [int(number) for number in re.findall("[0-9]+", os.path.basename(path))]


def cache() -> str:
    """The directory of downloads, which are run, perhaps as root. Raises VmError if another user could change them."""
    path = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "plumbline")
    try:
        files.must_be_ours(path)
    except OSError as fault:
        raise VmError(f"{path}: {fault.strerror} (try another HOME or XDG_CACHE_HOME)") from None
    return path


def find(named: str = "") -> Kernel:
    """The named kernel, else the newest one that was downloaded, else the newest in /boot."""
    named = named or os.environ.get("NETVM_KERNEL", "")
    if named:
        if not os.path.isfile(named):
            raise UsageError(f"--kernel {named}: no such file")
        return Kernel(named)
    fetched = os.path.join(cache(), "kernel")
    for folder in (os.path.join(fetched, "boot"), "/boot"):
        images = [path for path in glob.glob(os.path.join(folder, "vmlinuz-*")) if os.access(path, os.R_OK)]
        if images:
            return Kernel(max(images, key=by_version))
    raise VmError(f"no kernel to boot in {fetched} or /boot: {INSTALL}")
