"""The hosts of a mesh, and how ssh reaches them, from an Ansible inventory or an engine's list."""

import os
import re
import shlex
from typing import Any, Dict, List, Optional, Sequence, Tuple

from netkit import Fault, UsageError, machine
from netkit.engines import ROWS, Host, answer, parsed, split

LIMIT = 120     # seconds for an inventory, which may be a program that asks a cloud
# ssh's options for Ansible's variables.
OPTIONS = {"ansible_host": "HostName", "ansible_ssh_host": "HostName", "ansible_port": "Port", "ansible_ssh_port": "Port",
           "ansible_user": "User", "ansible_ssh_user": "User", "ansible_private_key_file": "IdentityFile",
           "ansible_ssh_private_key_file": "IdentityFile"}
WORDS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
OWN = ("~/.ssh/config", "/etc/ssh/ssh_config")
ADDRESS = "netmesh_address"     # a variable: the address for tests, if not that for ssh
ALL = ("all", "ungrouped")              # groups without meaning
Hosts = Dict[str, Dict[str, Any]]       # variables by host


def asked(source: str) -> "Tuple[str, str]":
    """Split ENGINE:WHAT; the engine is empty for an inventory. Raises Fault."""
    kind, colon, what = source.partition(":")
    if not colon or os.path.exists(source) or re.match(r"[0-9A-Fa-f:.]+(%\w+)?,", source):      # also an inventory: HOST,HOST may be IPv6 addresses
        return "", ""
    if kind not in ROWS:
        raise Fault(f"{kind}: no such engine ({', '.join(ROWS)})")
    return kind, what


def again(source: str) -> str:
    """A source that gives the same hosts again. Raises Fault."""
    kind, what = asked(source)
    return f"{kind}:{ROWS[kind].again(what)}" if kind else source


def mesh(source: str, pattern: Optional[str], options: "Dict[str, str]") -> "Tuple[Dict[str, Host], Hosts]":
    """The hosts of a mesh, named as in a plan, with the inventory's variables. Raises Fault."""
    kind, what = asked(source)
    if kind:
        return {one.name: one._replace(name=checked(f"{kind}:{one.name}", one.address)) for one in ROWS[kind].listed(what, options)}, {}
    hosts, groups = read(source, pattern)
    return {name: Host(end(name, known), tuple(group for group, names in groups.items() if name in names))
            for name, known in hosts.items()}, hosts


def checked(one: str, address: str) -> str:
    end = f"{one}={address}" if address else one
    try:
        split(end)
    except UsageError as fault:
        raise Fault(str(fault)) from None
    return end


def members(listed: "Dict[str, Any]", group: str) -> "set[str]":
    """The hosts of a group in the output of ansible-inventory --list, including those of its children."""
    known = listed.get(group) or {}
    return {*(known.get("hosts") or ()), *(name for one in known.get("children") or () for name in members(listed, one))}


def read(source: str, pattern: Optional[str] = None) -> "Tuple[Hosts, Dict[str, set[str]]]":
    """The hosts that match an Ansible pattern, and the hosts of each group. Raises Fault."""
    if "," in source and not pattern:
        return {name: {} for name in source.split(",") if name}, {}
    if not machine.find("ansible-inventory"):
        raise Fault("no ansible-inventory here, which reads inventories: apt-get install ansible-core, or give HOST,HOST")
    os.environ.update(ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="1", ANSIBLE_INVENTORY_UNPARSED_FAILED="1")
    listed, known = parsed(lambda found: ({**found}, found.get("_meta", {}).get("hostvars", {})),     # a list is no mapping
                           "ansible-inventory", "--inventory", source, "--list", limit=LIMIT)
    names = answer("ansible", pattern or "all", "--inventory", source, "--list-hosts", limit=LIMIT).splitlines()[1:]
    groups = {group: members(listed, group) for group in listed if group not in ("_meta", *ALL)}
    return {name: known.get(name, {}) for name in map(str.strip, names) if name}, groups


def end(name: str, known: "Dict[str, Any]") -> str:
    """The name of a host in a plan."""
    for one in (*OPTIONS, *WORDS, ADDRESS):
        if "{{" in str(known.get(one)):
            raise Fault(f"{name}: {one}={known[one]}: a template, which netmesh does not fill in")
    way = str(known.get("ansible_connection") or "smart")
    kind = "ssh" if way == "smart" else way.rpartition(".")[2]      # such as community.docker.docker
    if kind not in ROWS:
        raise Fault(f"{name}: ansible_connection={way}: no such engine ({', '.join(ROWS)})")
    address = known.get(ADDRESS)
    if kind == "ssh":
        address = address or next((known[one] for one in OPTIONS if OPTIONS[one] == "HostName" and one in known), "")
    if kind == "local" and not address:
        raise Fault(f"{name}: ansible_connection=local: {ADDRESS}=ADDRESS says where the others reach it")
    return checked(f"{kind}:{ROWS[kind].of_inventory(name, known)}", str(address or ""))


def one_word(value: str) -> str:
    """Quote for ssh_config(5), where paths may contain blanks."""
    return f'"{value}"' if " " in value and value[0] != '"' else value


def ssh_config(hosts: Hosts, own: Sequence[str] = OWN) -> str:
    """The file for ssh -F: options from the inventory, then from these files."""
    lines: "List[str]" = []
    for name, known in hosts.items():
        lines.append(f"Host {name}")
        lines += [f"  {OPTIONS[one]} {one_word(str(value))}" for one, value in known.items() if one in OPTIONS]
        lines += [f"  {option}" for one in WORDS for option in given(name, str(known.get(one) or ""))]
    return "\n".join([*lines, "Match all", *(f"  Include {one_word(os.path.abspath(file) if file[0] != '~' else file)}" for file in own), ""])


def given(name: str, text: str) -> "List[str]":
    """The options in a string of ssh arguments."""
    try:
        words, made = iter(shlex.split(text)), []
    except ValueError as fault:
        raise Fault(f"{name}: {text}: {fault}") from None
    for word in words:
        option = word[2:] or next(words, "")
        if word[:2] not in ("-o", "-J"):
            raise Fault(f"{name}: {word} of {text!r}: netmesh takes -o and -J")
        made.append(f"ProxyJump {option}" if word[:2] == "-J" else option.replace("=", " ", 1))
    return made
