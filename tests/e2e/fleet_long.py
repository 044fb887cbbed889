#!/usr/bin/env python3
"""netmesh with real engines, between six hosts in three racks: Slurm, with each node in its own namespace; podman,
also called docker, and a stand-in for kubectl that enters its containers; and an inventory read by Ansible.
NP_TEST_RUNS is how often faults are planted."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import unittest
from pathlib import Path

import lib

SLURM = [name for name in ("munged", "slurmctld", "slurmd", "srun", "salloc", "nsenter") if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]
NO_SLURM = lib.no_lab() or (f"no {', '.join(SLURM)} here: slurmctld slurmd slurm-client munge" if SLURM else "")
TOOLS = [name for name in ("podman", "runc", "busybox", "catatonit") if not shutil.which(name)]
NO_PODMAN = lib.no_lab() or (f"no {', '.join(TOOLS)} here: podman runc netavark iptables catatonit busybox-static" if TOOLS else "")
MIXED = [name for name in ("ansible-inventory", "sshd", "ssh-keygen") if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]
RUNS = int(os.environ.get("NP_TEST_RUNS", "1"))
CONF = """ClusterName=mesh
SlurmctldHost={host}(10.98.0.100)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool.%n
SlurmctldPidFile={place}/ctld.pid
SlurmdPidFile={place}/d.%n.pid
SlurmctldLogFile={place}/ctld.log
SlurmdLogFile={place}/d.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
TopologyPlugin=topology/tree
ReturnToService=2
KillWait=5
"""
SSHD = """Port 22
HostKey {place}/key
AuthorizedKeysFile {place}/key.pub
PidFile none
StrictModes no
UsePAM no
SetEnv PATH={place}:/usr/bin:/bin TMPDIR={place}
"""


class Real(lib.InPlace):
    """Each host has an interface to its rack's switch, and each rack has one to the others."""
    HOSTS = "abcdef"
    RACKS = {"r1": "ab", "r2": "cd", "r3": "ef"}
    ADDRESS = {name: f"10.98.0.{number}" for number, name in enumerate(HOSTS, 11)} | {"ctl": "10.98.0.100"}

    def setUp(self):
        super().setUp()
        self.dir.chmod(0o755)
        (self.dir / "p.toml").write_text(f"[constants]\nlength = 1\ntest = 'UDP_RR'\noptions = '{' '.join(lib.PACED)}'\n")
        (self.dir / "netperf").symlink_to(Path(lib.netperf()).resolve())
        (self.dir / "netserver").symlink_to(Path(lib.netserver()).resolve())
        self.env = {**os.environ, "TMPDIR": str(self.place), "PATH": f"{self.place}:{os.environ['PATH']}:/usr/sbin"}
        self.before, self.prefix = [], f"real{os.getpid()}"
        self.devices = {}       # for each host: the prefix that enters its namespace, its interface, and that at the switch
        self.namespace("hub")
        self.switch("hub")
        for rack in self.RACKS:
            self.switch(rack)
            self.ip("hub", "link", "add", f"{rack}up", "type", "veth", "peer", "name", f"{rack}down")
            self.ip("hub", "link", "set", f"{rack}up", "master", rack, "up")
            self.ip("hub", "link", "set", f"{rack}down", "master", "hub", "up")

    def ip(self, name, *words):
        self.must("ip", "-n", self.prefix + name, *words)

    def switch(self, name):
        self.ip("hub", "link", "add", name, "type", "bridge")
        self.ip("hub", "link", "set", name, "up")

    def namespace(self, name):
        self.must("ip", "netns", "add", self.prefix + name)
        self.addCleanup(self.must, "ip", "netns", "del", self.prefix + name)
        self.addCleanup(self.empty, name)

    def enters(self, name):
        return ["nsenter", f"--net=/run/netns/{self.prefix}{name}"]     # not ip netns exec, which hides cgroups

    def node(self, name):
        self.namespace(name)
        self.ip(name, "link", "add", "v", "type", "veth", "peer", "name", f"to{name}", "netns", self.prefix + "hub")
        self.ip(name, "address", "add", f"{self.ADDRESS[name]}/24", "dev", "v")
        for device in ("v", "lo"):
            self.ip(name, "link", "set", device, "up")
        self.plug(name, self.enters(name), "v", f"to{name}")

    def plug(self, name, enters, device, port):
        self.devices[name] = enters, device, port
        self.ip("hub", "link", "set", port, "master", next((rack for rack, names in self.RACKS.items() if name in names), "hub"), "up")

    def inside(self, name):
        return [int(pid) for pid in self.must("ip", "netns", "pids", self.prefix + name).split()]

    def empty(self, name):
        for pid in self.inside(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def begun(self, *words, plan="p.toml"):
        return subprocess.Popen([*self.before, str(lib.SCRIPTS / "netmesh"), plan, "--output", "o", *words, *self.PROGRAMS], cwd=self.place, env=self.env,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def mesh(self, *words, plan="p.toml"):
        with self.begun(*words, plan=plan) as proc:
            said = proc.communicate(timeout=400)[0]
        self.assertEqual(proc.returncode, 0, said)
        return said

    def resume(self, inventory, *words):
        """Without the plan, which is in the file."""
        words = [str(lib.SCRIPTS / "netmesh"), "--inventory", inventory, "--resume", "--output", "o", *words, *self.PROGRAMS]
        got = subprocess.run([*self.before, *words], cwd=self.place, env=self.env, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(got.returncode, 0, got)

    def pairs(self):
        runs = [json.loads(line) for line in (self.dir / "o").read_text().splitlines()[1:]]
        return sorted({tuple(run["point"][end].partition("=")[0][-1] for end in ("client", "server")) for run in runs if run["status"] == "ok"})

    def all(self):
        return [(a, b) for a in self.HOSTS for b in self.HOSTS if a != b]

    def must(self, *command):
        got = subprocess.run([*map(str, command)], env=self.env, cwd=self.place, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(got.returncode, 0, got)
        return got.stdout

    def limit(self, enters, device, mbit):
        self.must(*enters, "ip", "link", "set", device, "gso_max_segs", "1", "gso_max_size", "2000")
        self.must(*enters, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{mbit}mbit", "burst", "10k", "limit", "150k")

    def plant(self):
        """Plant a host at half rate, a pair with 1 % loss, and a rack with a slow uplink."""
        for name in self.HOSTS:
            enters, device, port = self.devices[name]
            for where, which in ((enters, device), (self.enters("hub"), port)):
                self.limit(where, which, 10 if name == "b" else 20)
        for device in ("r3up", "r3down"):
            self.limit(self.enters("hub"), device, 8)
        self.must(*self.devices["c"][0], "nft", "add table t; add chain t i { type filter hook prerouting priority 0; };"
                  f"add rule t i ip saddr {self.ADDRESS['a']} numgen random mod 100 == 0 drop")

    def planted(self, *inventory):
        """Exactly the planted faults are named: in rounds, and with all pairs at once."""
        self.plant()
        uplink, lossy = "all pairs between r3 and the rest", "a and c, both ways"
        for test, options, names, *order in (
                ("TCP_STREAM", "length=2", ["b, as client and server", uplink]), ("TCP_RR", "options=-b 1 -w 3ms", [lossy]),
                ("TCP_STREAM", "options=--rate 4M", ["b, as client and server", uplink], "--at-once"), ("TCP_RR", "options=-b 1 -w 3ms", [lossy], "--at-once")) * RUNS:
            with self.subTest(test=test, order=order):
                (self.dir / "planted.toml").write_text(f"[constants]\nlength = {(5 if test == 'TCP_RR' else 2) * (3 if order else 1)}\ntest = '{test}'\ntest_options = '-K reno'\n")
                self.names(names, inventory, "--set", options, *order)

    def names(self, names, inventory, *words):
        """A run may fail on a busy machine."""
        with self.begun(*inventory, "--force", *words, plan="planted.toml") as proc:
            said = proc.communicate(timeout=400)[0]
        if proc.returncode:
            print("".join(line for line in said.splitlines(True) if "FAILED" in line), flush=True)
            self.must(*self.before, lib.SCRIPTS / "netmesh", *inventory, "--resume", "--output", "o", *self.PROGRAMS)
        self.assertEqual(self.pairs(), self.all(), said)
        said = self.must(lib.SCRIPTS / "netreport", "--mesh", "--margin", "20", "o")
        named = [re.split("  +", row)[1] for row in re.sub(r"\w+:\w*(\w)\b|switch ", r"\1", said).splitlines() if row.startswith("all  ")]
        print(f"{self.id()} {' '.join(words)}: {named}", flush=True)
        if "--at-once" in words:        # the pairs of the slow host share its link unevenly
            named = [name for name in named if not re.fullmatch(r"\w to b|b to \w", name)]
        self.assertEqual(sorted(named), sorted(names), said)


@unittest.skipIf(NO_SLURM, NO_SLURM)
class Slurm(Real):
    PROGRAMS = ["--netperf", lib.netperf(), "--netserver", lib.netserver()]

    def setUp(self):
        super().setUp()
        self.env["SLURM_CONF"] = str(self.dir / "slurm.conf")
        host = os.uname().nodename
        (self.dir / "slurm.conf").write_text(CONF.format(host=host, place=self.place) + "".join(
            f"NodeName=n{name} NodeHostname={host} NodeAddr={self.ADDRESS[name]} Port=6918 CPUs=1 State=UNKNOWN\n"
            for name in self.HOSTS) + "PartitionName=p Nodes=ALL Default=YES MaxTime=60 State=UP\n")
        (self.dir / "topology.conf").write_text("".join(f"SwitchName={rack} Nodes={','.join('n' + name for name in names)}\n" for rack, names in self.RACKS.items())
                                                  + "SwitchName=top Switches=r[1-3]\n")
        (self.dir / "munge.key").write_bytes(os.urandom(64))
        (self.dir / "munge.key").chmod(0o600)
        self.must("munged", "--force", f"--key-file={self.place}/munge.key", f"--socket={self.place}/munge.socket", f"--pid-file={self.place}/munged.pid",
                  f"--seed-file={self.place}/munge.seed", f"--log-file={self.place}/munged.log")
        self.addCleanup(self.kill, "munged.pid")
        for name in self.ADDRESS:
            self.node(name)
        self.before = self.enters("ctl")
        self.must(*self.before, "slurmctld", "-c")
        for name in self.HOSTS:
            (self.dir / f"spool.n{name}").mkdir()
            self.slurmd(name)
        self.idle()

    def slurmd(self, name):
        self.must(*self.enters(name), "slurmd", "-N", f"n{name}")

    def idle(self):
        self.assertTrue(lib.wait_for(lambda: self.asked("sinfo", "-h", "-o", "%T").split() == ["idle"], 60), self.asked("sinfo"))

    def kill(self, file):
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((self.dir / file).read_text()), signal.SIGTERM)

    def asked(self, *words):
        return self.must(*self.before, *words)

    def nothing_is_left(self):
        self.assertTrue(lib.wait_for(lambda: not self.asked("squeue", "-h") and all(len(self.inside(name)) == 1 for name in self.HOSTS), 30))
        self.assertEqual(list(self.dir.glob("tmp.*")), [])

    def test_planted(self):
        self.planted("--inventory", "slurm:", "--nodes", "6", "--partition", "p")
        self.nothing_is_left()

    def test_ended_in_the_middle(self):
        """Killed by SIGKILL and by scancel, and one node's slurmd is killed with its children: nothing is left
        behind; --resume measures the rest in an allocation of the same nodes."""
        for kind, words in (("kill", []), ("cancel", ["--copy"]), ("node", [])):
            with self.subTest(kind), self.begun("--inventory", "slurm:", "--nodes", "6", "--force", "--set", "length=3", *words) as proc:
                self.assertTrue(lib.wait_for(lambda: (self.dir / "o").exists() and self.pairs(), 60))
                if kind == "kill":
                    proc.kill()
                elif kind == "cancel":
                    self.asked("scancel", self.asked("squeue", "-h", "-o", "%i").strip())
                else:
                    self.empty("c")     # which leaves its files
                said = proc.communicate(timeout=200)[0]
                self.assertRegex(said, {"kill": "$", "cancel": "the allocation has ended", "node": "slurm:nc: .*; runs not tried"}[kind])
                if kind == "node":
                    self.assertEqual([pair for pair in self.all() if "c" not in pair and pair not in self.pairs()], [], said)
                    for left in self.dir.glob("tmp.*"):
                        shutil.rmtree(left)
                    self.slurmd("c")
                    self.idle()
                self.nothing_is_left()
                self.resume("slurm:" + ",".join(f"n{name}" for name in self.HOSTS))
                self.assertEqual(self.pairs(), self.all())
                self.nothing_is_left()
            (self.dir / "o").unlink()


@unittest.skipIf(NO_PODMAN, NO_PODMAN)
class Podman(Real):
    """The image of deploy/Containerfile with a shell, read-only, without capabilities, as user 65534."""
    PROGRAMS = ["--netperf", lib.netperf(), "--netserver", lib.netserver()]
    LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]
    KUBECTL = """#!/bin/sh
case $* in
*"get --output=json pods"*) cat pods; exit ;;
*"get --output=json nodes"*) echo 'Error from server (Forbidden): nodes is forbidden' >&2; exit 1 ;;
esac
while [ "$1" != -i ]; do shift; done
pod=$2; shift 3
exec podman exec -i "$pod" "$@"
"""

    def setUp(self):
        super().setUp()
        self.name, graph = self.prefix, self.dir / "storage"
        (self.dir / "storage.conf").write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{graph}/graph"\nrunroot = "{graph}/run"\n')
        (self.dir / "containers.conf").write_text(f'[network]\nnetwork_backend = "netavark"\nnetwork_config_dir = "{graph}/networks"\n[engine]\n'
                                                    f'runtime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\ntmp_dir = "{graph}/tmp"\n')
        self.env.update(CONTAINERS_CONF=str(self.dir / "containers.conf"), CONTAINERS_STORAGE_CONF=str(self.dir / "storage.conf"))
        root = self.dir / "root"
        for folder in ("bin", "tmp"):
            (root / folder).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        for tool in ("sh", "mktemp", "mkfifo", "head", "tar", "cat", "wc", "sleep", "rm", "ls"):
            (root / "bin" / tool).symlink_to("busybox")
        (self.dir / "out").mkdir()
        for program in (lib.netperf(), lib.netserver()):        # the base image has their libraries
            shutil.copy(program, self.dir / "out")
            for word in lib.must(["ldd", program]).split():
                if word.startswith("/") and not (root / word[1:]).exists():
                    (root / word[1:]).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(word, root / word[1:])
        self.before = self.enters("hub")
        self.must("sh", "-c", "tar -C root -c . | podman import - base")
        self.must("podman", "build", "-q", "-t", "mesh", "--build-arg", "BASE=base", "-f", lib.TOP / "deploy/Containerfile", "out")
        self.must(*self.before, "podman", "network", "create", "--subnet", "10.98.0.0/24", self.name)
        self.addCleanup(self.must, "podman", "network", "rm", "-f", self.name)

    def contain(self, hosts):
        """Make these hosts containers, on podman's bridge and in their racks."""
        for host in hosts:
            self.must(*self.before, "podman", "run", "-d", "--init", "--name", self.name + host, "--network", self.name, "--ip", self.ADDRESS[host],
                      "--read-only", "--cap-drop=all", "--user", "65534:65534", "--label", "app=mesh", *self.LIMITS, "--entrypoint", "sleep", "mesh", "3600")
            self.addCleanup(self.must, *self.enters("hub"), "podman", "rm", "-f", "-t", "0", self.name + host)
            enters = ["nsenter", "--net=/proc/{}/ns/net".format(self.must("podman", "inspect", "-f", "{{.State.Pid}}", self.name + host).strip())]
            (device,) = json.loads(self.must(*enters, "ip", "-json", "link", "show", "eth0"))
            ports = json.loads(self.must("ip", "-n", self.prefix + "hub", "-json", "link"))
            self.plug(host, enters, "eth0", next(port["ifname"] for port in ports if port["ifindex"] == device["link_index"]))
        bridge = self.must("podman", "network", "inspect", "-f", "{{.NetworkInterface}}", self.name).strip()
        for rack in self.RACKS:
            self.ip("hub", "link", "set", f"{rack}down", "master", bridge)

    def nothing_is_left(self, hosts=Real.HOSTS):
        for host in hosts:
            self.assertTrue(lib.wait_for(lambda host=host: len(self.must("podman", "top", self.name + host, "pid").split()) == 3, 20),
                            self.must("podman", "top", self.name + host, "pid", "ppid", "state", "args"))
            self.assertEqual(self.must("podman", "exec", self.name + host, "ls", "/tmp"), "")

    def test_podman(self):
        """One container is stopped in the middle and started again; SIGKILL."""
        self.contain(self.HOSTS)
        with self.begun("--inventory", "podman:label=app=mesh", "--set", "length=3") as proc:
            self.assertTrue(lib.wait_for(lambda: (self.dir / "o").exists() and self.pairs(), 60))
            self.must("podman", "kill", self.name + "c")
            said = proc.communicate(timeout=200)[0]
        self.assertIn(f"podman:{self.name}c: it is exited: podman start {self.name}c", said)
        self.must(*self.before, "podman", "start", self.name + "c")
        self.resume("podman:label=app=mesh")
        self.assertEqual(self.pairs(), self.all())
        with self.begun("--inventory", "podman:label=app=mesh", "--set", "length=3", "--force") as proc:
            self.assertTrue(lib.wait_for(lambda: self.pairs() not in ([], self.all()), 60))
            proc.kill()
        self.nothing_is_left()
        self.resume("podman:label=app=mesh")
        self.assertEqual(self.pairs(), self.all())
        self.nothing_is_left()

    def test_docker(self):
        """Without docker: podman under that name."""
        self.contain(self.HOSTS)
        lib.executable(self.dir / "docker", '#!/bin/sh\nexec podman "$@"\n')
        self.mesh("--inventory", "docker:label=app=mesh")
        self.assertEqual(self.pairs(), self.all())
        self.nothing_is_left()

    def test_kubectl(self):
        """Without a cluster: the stand-in prints kubectl's JSON, and execs into the containers."""
        self.contain(self.HOSTS)
        pods = [{"metadata": {"name": self.name + host, "namespace": "net"}, "spec": {"nodeName": host}, "status": {"phase": "Running", "podIP": self.ADDRESS[host]}}
                for host in self.HOSTS]
        (self.dir / "pods").write_text(json.dumps({"items": pods}))
        lib.executable(self.dir / "kubectl", self.KUBECTL)
        self.mesh("--inventory", "kubectl:app=mesh", "--namespace", "net")
        self.assertEqual(self.pairs(), self.all())
        self.nothing_is_left()

    def inventory(self, variables):
        """An inventory for Ansible; the racks are groups."""
        (self.dir / "hosts.ini").write_text("".join(f"[{rack}]\n" + "".join(
            f"{name} netmesh_address={self.ADDRESS[name]} {variables[name]}\n" for name in names) for rack, names in self.RACKS.items()))
        return "--inventory", "hosts.ini"

    def container(self, host):
        return f"ansible_connection=containers.podman.podman ansible_host={self.name}{host}"

    @unittest.skipIf(MIXED, f"no {', '.join(MIXED)} here: ansible-core openssh-server")
    def test_planted(self):
        self.contain(self.HOSTS)
        self.planted(*self.inventory({host: self.container(host) for host in self.HOSTS}))
        self.nothing_is_left()

    @unittest.skipIf(MIXED, f"no {', '.join(MIXED)} here: ansible-core openssh-server")
    def test_planted_in_a_mixed_inventory(self):
        """Hosts reached by ssh, containers, and the host of netmesh itself."""
        self.contain("ace")
        self.must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key")
        (self.dir / "sshd.conf").write_text(SSHD.format(place=self.place))
        for host in "bdf":
            self.node(host)
        Path("/run/sshd").mkdir(exist_ok=True)      # sshd needs it
        for host in "bd":
            self.must(*self.enters(host), shutil.which("sshd", path=self.env["PATH"]), "-f", self.dir / "sshd.conf")
        ssh = (f"ansible_ssh_private_key_file={self.place}/key "
               "ansible_ssh_common_args='-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR'")
        self.before = self.enters("f")
        variables = {**{host: self.container(host) for host in "ace"}, **{host: f"ansible_host={self.ADDRESS[host]} {ssh}" for host in "bd"},
                     "f": "ansible_connection=local"}
        self.planted(*self.inventory(variables))
        for host in "bdf":
            self.assertTrue(lib.wait_for(lambda host=host: len(self.inside(host)) == (host != "f"), 20), self.inside(host))
        self.nothing_is_left("ace")


if __name__ == "__main__":
    for reason in filter(None, (NO_SLURM, NO_PODMAN)):
        print(f"SKIP: {reason}", flush=True)
    lib.unit_main()
