"""The files in deploy/: the Kubernetes manifest is consistent and its commands run as it says (without a cluster),
and nft(8) accepts the rules.
"""

import datetime
import json
import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List

import lib

DEPLOY = lib.TOP / "deploy"
PORT = 12865
NOBODY = 65534


def documents(*names: str) -> "List[Dict[str, Any]]":
    try:
        import yaml
    except ImportError:
        raise lib.Skipped("no PyYAML in this Python") from None
    return [one for name in names for one in yaml.safe_load_all((DEPLOY / name).read_text())]


def manifests() -> "Dict[str, Dict[str, Any]]":
    found = documents("kubernetes-nodes.yaml", "kubernetes.yaml")
    assert all(set(one) == {"apiVersion", "kind", "metadata", "spec"} for one in found), found
    return {one["kind"]: one for one in found}


def container(kind: str) -> "Dict[str, Any]":
    pod = manifests()[kind]["spec"]["template"]["spec"]
    (one,) = pod["containers"]
    inside = one["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == NOBODY, pod
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, pod
    assert inside["readOnlyRootFilesystem"] and not inside["allowPrivilegeEscalation"], inside
    assert inside["capabilities"] == {"drop": ["ALL"]} and "memory" in one["resources"]["limits"], one
    return dict(one)


def it_agrees_with_itself() -> None:
    found = manifests()
    assert set(found) == {"Deployment", "Service", "Job", "DaemonSet"}, set(found)
    nodes = found["DaemonSet"]["spec"]
    assert nodes["selector"]["matchLabels"] == nodes["template"]["metadata"]["labels"], nodes
    (one,), of_one = nodes["template"]["spec"]["containers"], container("Deployment")
    assert {(port["hostPort"], port["protocol"]) for port in one["ports"]} == {(PORT, "TCP"), (PORT, "UDP")}, one
    assert container("DaemonSet")["args"][:4] == of_one["args"] and one["image"] == of_one["image"], one
    template = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Deployment"]["spec"]["selector"]["matchLabels"] == template == found["Service"]["spec"]["selector"]
    offered = {(one["port"], one["protocol"]) for one in found["Service"]["spec"]["ports"]}
    opened = {(one["containerPort"], one["protocol"]) for one in container("Deployment")["ports"]}
    assert offered == opened == {(PORT, "TCP"), (PORT, "UDP")}, (offered, opened)
    client = container("Job")
    assert client["args"][client["args"].index("-H") + 1] == found["Service"]["metadata"]["name"], client
    assert client["image"] == container("Deployment")["image"]


def the_mesh_may_enter_its_own_pods_only() -> None:
    found = {one["kind"]: one for one in documents("kubernetes-mesh.yaml")}
    role, job, nodes = found["Role"], found["Job"]["spec"]["template"]["spec"], found["DaemonSet"]["spec"]["template"]
    assert {one["metadata"].get("namespace") for one in found.values()} == {None, "netmesh"} and "ClusterRole" not in found, found
    assert [(rule["resources"], rule["verbs"]) for rule in role["rules"]] == [(["pods"], ["get", "list"]), (["pods/exec"], ["create", "get"])]
    assert found["RoleBinding"]["roleRef"]["name"] == role["metadata"]["name"], found["RoleBinding"]
    assert job["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"] == found["RoleBinding"]["subjects"][0]["name"]
    args = job["containers"][0]["args"]
    (label, value), = nodes["metadata"]["labels"].items()
    assert args[args.index("--inventory") + 1] == f"kubectl:{label}={value}", args
    for pod in (job, nodes["spec"]):
        inside = pod["containers"][0]["securityContext"]
        assert inside["readOnlyRootFilesystem"] and inside["capabilities"] == {"drop": ["ALL"]} and pod["volumes"], pod
        assert "cpu" not in pod["containers"][0]["resources"]["limits"], "a quota would be measured"


def as_the_manifest_says(program: str) -> "List[str]":
    """Without privileges, and with a read-only file system."""
    return ["unshare", "--mount", "sh", "-c", "mount -o remount,ro,bind / 2> /dev/null; exec \"$@\"", "sh", "setpriv",
            f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all", "--no-new-privs", program]


def its_commands_run() -> None:
    if os.getuid() != 0 or not shutil.which("setpriv"):
        raise lib.Skipped("needs root and setpriv, to be a user without rights")
    server, client = container("Deployment")["args"], container("Job")["args"]
    args = server[:server.index("-p")]
    more = [word.replace("10.0.0.0/8", "127.0.0.1") for word in container("DaemonSet")["args"][len(server):]]
    with lib.Daemon(as_the_manifest_says(lib.netserver())[:-1], [*args, *more]) as daemon:
        words = [{"netserver": "127.0.0.1", str(PORT): str(daemon.port), "10": "0.5"}.get(word, word) for word in client]
        for test in ("TCP_RR", "UDP_RR"):
            got = lib.run([*as_the_manifest_says(lib.netperf()),
                           *(test if word == "TCP_RR" else word for word in words)], 60)
            assert got.rc == 0 and test in got.out, got


def the_container_has_both_programs() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    assert "ARG BASE=scratch\nFROM ${BASE}\nCOPY netserver netperf /\n" in text and f"{NOBODY}:{NOBODY}" in text, text
    assert f"EXPOSE {PORT}/tcp {PORT}/udp" in text and '"--one-port"' in text, text
    assert re.search(r"^#   scripts/static OUT$", text, re.M), "the build with --json, --key-file and the filter of system calls"


def a_static_build_says_what_is_missing() -> None:
    with tempfile.TemporaryDirectory() as place:
        for tool in ("dirname", "file", "ip", "mkdir", "tail"):     # without musl-gcc
            os.symlink("/bin/true" if tool in ("file", "ip") else str(shutil.which(tool)), f"{place}/{tool}")
        got = lib.run(["env", "-i", f"PATH={place}", str(lib.SCRIPTS / "static"), "--libc", "musl", f"{place}/out"], 20)
    assert (got.rc, got.err) == (1, "static: needs musl-gcc: apt-get install musl-tools\n"), got


def nft_takes_the_rules() -> None:
    if os.getuid() != 0 or not shutil.which("nft"):
        raise lib.Skipped("needs root and nft")
    lib.must(["unshare", "--net", "nft", "--check", "--file", str(DEPLOY / "nftables.conf")], 20)


def the_dashboard_asks_for_what_there_is() -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    asked = {name for panel in board["panels"] for target in panel["targets"] for name in re.findall(r"netperf_\w+", target["expr"])}
    offered = set(re.findall(r'"(netperf_\w+)"', (lib.TOP / "scripts/netkit/watch.py").read_text()))
    assert {re.sub("_(total|bucket)$", "", name) for name in asked} <= offered, (asked, offered)
    assert len(asked) == 4, asked


def the_role_changes_nothing_twice() -> None:
    """Installs into a directory, without a service: the second run changes nothing. netserver accepts its options."""
    if not shutil.which("ansible-playbook"):
        raise lib.Skipped("no ansible-playbook: ansible-core")
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(f"{root}/etc")
        given = {"netserver_root": root, "netserver_started": False, "netserver_key": "0123456789abcdef", "ansible_become": False}
        play = ["ansible-playbook", "-i", "localhost,", "-c", "local", str(DEPLOY / "ansible" / "netserver.yml"), "-e"]
        for changed in (3, 0):
            got = lib.run([*play, json.dumps(given)], 120)
            assert got.rc == 0 and f"changed={changed} " in got.out and "failed=0" in got.out, got
        assert os.stat(f"{root}/etc/netserver.key").st_mode & 0o777 == 0o600
        settings = Path(f"{root}/etc/systemd/system/netserver.service.d/ansible.conf").read_text()
        words = settings.split("ExecStart=/usr/bin/netserver -D ")[1].split()
        with lib.Daemon(args=[word.replace("%d/key", f"{root}/etc/netserver.key") for word in words[2:]]) as daemon:
            got = lib.run(lib.command(daemon.port, "--key-file", f"{root}/etc/netserver.key", "-l", "-1", "-t",
                                      "TCP_RR"), 20)
            assert got.rc == 0, got
        got = lib.run([*play, json.dumps({**given, "netserver_key": "short"})], 120)
        assert got.rc != 0 and "16 characters or more" in got.out, got


def asked(name: str, question: Any, place: str) -> Any:
    """The answer of pScheduler's tool."""
    got = subprocess.run([str(DEPLOY / "pscheduler" / "netperf" / name)], input=json.dumps(question), capture_output=True, text=True,
                         timeout=60, env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}, check=False)
    assert got.returncode == 0, got
    return json.loads(got.stdout)


def pscheduler_gets_its_answers() -> None:
    with tempfile.TemporaryDirectory() as place:
        for name, path in (("netperf", lib.netperf()), ("netserver", lib.netserver())):
            os.symlink(os.path.abspath(path), os.path.join(place, name))
        assert asked("enumerate", {}, place)["tests"] == ["throughput", "rtt"]
        assert asked("can-run", {"type": "throughput", "spec": {"schema": 1, "dest": "h", "udp": True}}, place) == {"can-run": True}
        refused = asked("can-run", {"type": "throughput", "spec": {"dest": "h", "flow-label": 3}}, place)
        assert not refused["can-run"] and "flow-label" in refused["reasons"][0], refused
        for test, more, says in (("throughput", {"udp": True, "reverse": True}, "udp and reverse"), ("rtt", {"interval": "PT2S"}, "interval")):
            refused = asked("can-run", {"type": test, "spec": {"schema": 1, "dest": "h", **more}}, place)
            assert not refused["can-run"] and refused["reasons"][0].startswith(says), refused
        assert asked("duration", {"type": "throughput", "spec": {"dest": "h", "duration": "PT1M", "omit": "PT2S"}}, place) == {"duration": "PT68S"}
        port, now = lib.free_port(), datetime.datetime.now(datetime.timezone.utc).isoformat()
        for test, spec in (("throughput", {"duration": "PT1S", "interval": "PT0.5S", "parallel": 2, "mss": 1000, "congestion": "reno",
                                           "reverse": True, "buffer-length": 1000}),
                           ("throughput", {"duration": "PT1S", "udp": True, "bandwidth": 10000000}),
                           ("rtt", {"count": 20, "interval": "PT0.05S", "length": 100})):
            test_of = {"type": test, "spec": {"schema": 1, "dest": "127.0.0.1", "single-ended-port": port, **spec}}
            near = asked("participant-data", {"participant": 0, "test": test_of}, place)
            assert near == ({"addresses": ["127.0.0.1"]} if test == "throughput" else {}), near
            data = [near, {"port": port}] if test == "throughput" else [{}]
            question = {"schedule": {"start": now, "duration": "PT9S"}, "test": test_of, "participant-data": data}
            with ThreadPoolExecutor(2) as pool, lib.Daemon() as daemon:
                if test == "rtt":       # a netserver runs there
                    first = asked("run", {**question, "participant": 0, "participant-data": [{}, {"port": daemon.port}]}, place)
                else:
                    server = pool.submit(asked, "run", {**question, "participant": 1}, place)
                    first = asked("run", {**question, "participant": 0}, place)
                    stranger = lib.run([lib.netperf(), "-H", "127.0.0.1", "-L", "127.0.0.2", "-p", str(port), "-t", "TCP_RR", "-l", "-1"], 60)
                    assert stranger.rc != 0, stranger
                    assert server.result()["succeeded"] and "--allow 127.0.0.1" in server.result()["diags"], server.result()
            result = asked("merged-results", {"results": [first, {}]}, place)
            assert result["succeeded"] and first["error"] is None, first
            if test == "rtt":
                assert 19 <= result["sent"] == result["received"] <= 20 and re.fullmatch(r"PT0\.0\d+S", result["mean"]), result
                continue
            whole = result["summary"]["summary"]
            assert ("-R 1" if "udp" in spec else "-m ,1000 -G 1000 -K ,reno") in first["diags"], first
            assert (whole["retransmits"] is None) == ("udp" in spec), result        # the sender's; unknown for each flow here
            assert result["summary"]["streams"][-1]["retransmits"] is None, result
            assert whole["throughput-bits"] > 1e6 and 0.9 < whole["end"] < 1.5, whole
            assert len(result["summary"]["streams"]) == spec.get("parallel", 1) and result["intervals"], result
            assert whole["throughput-bits"] < 12e6 and whole["sent"] > 0 if "udp" in spec else whole["sent"] is None, whole
        unknown = asked("run", {**question, "participant": 1, "participant-data": [{}, {"port": port}]}, place)
        assert unknown["error"] == "the source's address is not known", unknown
        first = asked("run", {**question, "participant": 0, "participant-data": [{}, {"port": lib.free_port()}]}, place)
        assert not first["succeeded"] and "Connection refused" in first["error"], first
        assert not asked("merged-results", {"results": [first]}, place)["succeeded"]


def the_unit_is_one() -> None:
    if not shutil.which("systemd-analyze"):
        raise lib.Skipped("no systemd-analyze")
    got = lib.run(["systemd-analyze", "verify", "--man=no", str(DEPLOY / "netmesh.service")], 60)
    complaints = [line for line in got.err.splitlines() if "netmesh.service" in line and "not executable" not in line
                  and "/usr/bin/netmesh" not in line]
    assert not complaints, complaints


def suite(report: lib.Report) -> None:
    report.each((it_agrees_with_itself, the_mesh_may_enter_its_own_pods_only, its_commands_run, the_container_has_both_programs,
                 a_static_build_says_what_is_missing, nft_takes_the_rules,
                 the_dashboard_asks_for_what_there_is, the_role_changes_nothing_twice,
                 pscheduler_gets_its_answers, the_unit_is_one))


if __name__ == "__main__":
    lib.main(suite)
