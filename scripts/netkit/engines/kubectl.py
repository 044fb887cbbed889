"""Pods, by kubectl: kubectl:[[CONTEXT/]NAMESPACE/]POD is a single one, kubectl:SELECTOR those with matching labels."""

import functools
from typing import Any, Callable, Dict, List

from netkit import machine
from netkit.engines.engine import Engine, Host, parsed

PART = r"[^\s=/-][^\s=/]*"
ZONE = "topology.kubernetes.io/zone"


def call(name: str) -> "List[str]":
    """The kubectl command with the pod's context and namespace."""
    where, _, namespace = name.rpartition("/")[0].rpartition("/")
    return ["kubectl", *([f"--context={where}"] if where else []), *([f"--namespace={namespace}"] if namespace else [])]


def of_pod(name: str, taken: "Callable[[Any], str]") -> str:
    """What is taken from the pod's description by the cluster. Raises MachineError."""
    return parsed(taken, *call(name), "get", "pod", name.rpartition("/")[2], "--output=json")


class Kubectl(Engine):
    KIND, NAME = "kubectl", rf"(?:(?:[^\s=-][^\s=]*/)?{PART}/)?{PART}"

    def before(self, name: str) -> "List[str]":
        return [*call(name), "exec", "-i", name.rpartition("/")[2], "--"]

    @functools.lru_cache(maxsize=None)
    def address(self, name: str) -> str:
        return of_pod(name, lambda pod: str((pod.get("status") or {}).get("podIP") or ""))

    def trouble(self, name: str) -> str:
        phase = of_pod(name, lambda pod: "being deleted" if pod["metadata"].get("deletionTimestamp") else
                       str((pod.get("status") or {}).get("phase")))
        return "" if phase == "Running" else f"the pod is {phase}"

    def listed(self, what: str, options: "Dict[str, str]") -> "List[Host]":
        where = [options[name] for name in ("context", "namespace") if options.get(name)]
        if options.get("context") and not options.get("namespace"):
            where.append("default")
        asked = [*call("/".join([*where, ""])), "get", "--output=json"]

        def host(pod: "Dict[str, Any]") -> Host:
            name = "/".join([*where[:-1], pod["metadata"].get("namespace") or "default", pod["metadata"]["name"]])
            return Host(name, node=str(pod["spec"].get("nodeName") or ""), address=str(pod["status"].get("podIP") or ""))

        hosts = parsed(lambda found: [host(pod) for pod in found["items"] if (pod.get("status") or {}).get("phase") == "Running"],
                       *asked, "pods", f"--selector={what}")
        if not hosts:
            raise machine.MachineError(f"kubectl: no pod runs with {what} (--namespace, --context?)")
        zones = self.zones(asked)
        return [one._replace(groups=tuple(filter(None, [zones.get(one.node)]))) for one in sorted(hosts)]

    def zones(self, asked: "List[str]") -> "Dict[str, str]":
        """The zones of nodes; empty without the permission to ask."""
        try:
            return parsed(lambda found: {node["metadata"]["name"]: f"zone {labels[ZONE]}" for node in found["items"]
                                         if ZONE in (labels := node["metadata"].get("labels") or {})}, *asked, "nodes")
        except machine.MachineError:
            return {}

    def of_inventory(self, name: str, known: "Dict[str, Any]") -> str:
        parts = [known.get(f"ansible_kubectl_{one}") for one in ("context", "namespace", "pod")]
        parts[1] = parts[1] or (parts[0] and "default")
        parts[2] = parts[2] or known.get("ansible_host") or name
        return "/".join(str(one) for one in parts if one)
