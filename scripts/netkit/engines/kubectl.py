"""Pods, by kubectl: kubectl:[[CONTEXT/]NAMESPACE/]POD is a single one, kubectl:SELECTOR those with matching labels."""

import functools
from typing import Any, Dict, List

from netkit import machine
from netkit.engines.engine import Engine, Host, parsed

PART = r"[^\s=/-][^\s=/]*"
ZONE = "topology.kubernetes.io/zone"


def call(name: str) -> "List[str]":
    """The kubectl command with the pod's context and namespace."""
    where, _, namespace = name.rpartition("/")[0].rpartition("/")
    return ["kubectl", *([f"--context={where}"] if where else []), *([f"--namespace={namespace}"] if namespace else [])]


def pod(name: str) -> "Dict[str, Any]":
    """The pod's description by the cluster. Raises MachineError."""
    return parsed(dict, *call(name), "get", "pod", name.rpartition("/")[2], "--output=json")


class Kubectl(Engine):
    KIND, NAME = "kubectl", rf"(?:(?:[^\s=-][^\s=]*/)?{PART}/)?{PART}"

    def before(self, name: str) -> "List[str]":
        return [*call(name), "exec", "-i", name.rpartition("/")[2], "--"]

    @functools.lru_cache(maxsize=None)
    def address(self, name: str) -> str:
        return str((pod(name).get("status") or {}).get("podIP") or "")

    def trouble(self, name: str) -> str:
        found = pod(name)
        phase = "being deleted" if found["metadata"].get("deletionTimestamp") else (found.get("status") or {}).get("phase")
        return "" if phase == "Running" else f"the pod is {phase}"

    def listed(self, what: str, options: "Dict[str, str]") -> "List[Host]":
        where = [options[name] for name in ("context", "namespace") if options.get(name)]
        if options.get("context") and not options.get("namespace"):
            where.append("default")
        asked = [*call("/".join([*where, ""])), "get", "--output=json"]
        pods = [pod for pod in parsed(dict, *asked, "pods", f"--selector={what}")["items"]
                if (pod.get("status") or {}).get("phase") == "Running"]
        if not pods:
            raise machine.MachineError(f"kubectl: no pod runs with {what} (--namespace, --context?)")
        zones = self.zones(asked)
        hosts = []
        for pod in sorted(pods, key=lambda one: str(one["metadata"]["name"])):
            node = str(pod["spec"].get("nodeName") or "")
            name = "/".join([*where[:-1], pod["metadata"].get("namespace") or "default", pod["metadata"]["name"]])
            hosts.append(Host(name, tuple(filter(None, [zones.get(node)])), node, str(pod["status"].get("podIP") or "")))
        return hosts

    def zones(self, asked: "List[str]") -> "Dict[str, str]":
        """The zones of nodes; empty without the permission to ask."""
        try:
            nodes: "List[Dict[str, Any]]" = parsed(dict, *asked, "nodes")["items"]
        except machine.MachineError:
            return {}
        return {node["metadata"]["name"]: f"zone {labels[ZONE]}" for node in nodes if ZONE in (labels := node["metadata"].get("labels") or {})}

    def of_inventory(self, name: str, known: "Dict[str, Any]") -> str:
        parts = [known.get(f"ansible_kubectl_{one}") for one in ("context", "namespace", "pod")]
        parts[1] = parts[1] or (parts[0] and "default")
        parts[2] = parts[2] or known.get("ansible_host") or name
        return "/".join(str(one) for one in parts if one)
