#!/usr/bin/env python3
"""netmesh with real engines: Slurm, each node in a namespace of its own, and podman, with a stand-in for kubectl that enters its containers, too;
and an inventory that Ansible reads."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import lib

SLURM = [name for name in ("munged", "slurmctld", "slurmd", "srun", "salloc", "nsenter") if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]
NO_SLURM = lib.no_lab() or (f"no {', '.join(SLURM)} here: slurmctld slurmd slurm-client munge" if SLURM else "")
TOOLS = [name for name in ("podman", "runc", "busybox", "catatonit") if not shutil.which(name)]
NO_PODMAN = lib.no_lab() or (f"no {', '.join(TOOLS)} here: podman runc netavark iptables catatonit busybox-static" if TOOLS else "")
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
ReturnToService=2
KillWait=5
"""


class Real(unittest.TestCase):
    HOSTS = "abc"

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(os.path.realpath(place.name))
        self.place.chmod(0o755)
        (self.place / "p.toml").write_text(f"[constants]\nlength = 1\ntest = 'UDP_RR'\noptions = '{' '.join(lib.PACED)}'\n")
        self.env = {**os.environ, "TMPDIR": str(self.place), "PATH": f"{self.place}:{os.environ['PATH']}:/usr/sbin"}
        self.before = []

    def begun(self, *words):
        return subprocess.Popen([*self.before, str(lib.SCRIPTS / "netmesh"), "p.toml", "--output", "o", *words, *self.PROGRAMS], cwd=self.place, env=self.env,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def mesh(self, *words, status=0):
        with self.begun(*words) as proc:
            said = proc.communicate(timeout=120)[0]
        self.assertEqual(proc.returncode, status, said)
        return said

    def resume(self, inventory, *words):
        """Without the plan: as the file says."""
        words = [str(lib.SCRIPTS / "netmesh"), "--inventory", inventory, "--resume", "--output", "o", *words, *self.PROGRAMS]
        got = subprocess.run([*self.before, *words], cwd=self.place, env=self.env, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(got.returncode, 0, got)

    def pairs(self):
        runs = [json.loads(line) for line in (self.place / "o").read_text().splitlines()[1:]]
        return sorted({tuple(run["point"][end].partition("=")[0][-1] for end in ("client", "server")) for run in runs if run["status"] == "ok"})

    def all(self):
        return [(a, b) for a in self.HOSTS for b in self.HOSTS if a != b]

    def must(self, *command):
        return subprocess.run([*map(str, command)], env=self.env, cwd=self.place, check=True, capture_output=True, text=True, timeout=60).stdout


@unittest.skipIf(NO_SLURM, NO_SLURM)
class Slurm(Real):
    PROGRAMS = ["--copy", "--netperf", lib.netperf(), "--netserver", lib.netserver()]

    def setUp(self):
        super().setUp()
        self.prefix, self.env["SLURM_CONF"] = f"sl{os.getpid()}", str(self.place / "slurm.conf")
        host = os.uname().nodename
        (self.place / "slurm.conf").write_text(CONF.format(host=host, place=self.place) + "".join(
            f"NodeName=n{name} NodeHostname={host} NodeAddr=10.98.0.{number} Port=6918 CPUs=1 State=UNKNOWN\n"
            for number, name in enumerate(self.HOSTS, 1)) + "PartitionName=p Nodes=ALL Default=YES MaxTime=60 State=UP\n")
        self.namespace("hub")
        self.must("ip", "-n", self.prefix + "hub", "link", "add", "hub", "type", "bridge")
        self.must("ip", "-n", self.prefix + "hub", "link", "set", "hub", "up")
        (self.place / "munge.key").write_bytes(os.urandom(64))
        (self.place / "munge.key").chmod(0o600)
        self.must("munged", "--force", f"--key-file={self.place}/munge.key", f"--socket={self.place}/munge.socket", f"--pid-file={self.place}/munged.pid",
                  f"--seed-file={self.place}/munge.seed", f"--log-file={self.place}/munged.log")
        self.addCleanup(self.kill, "munged.pid")
        for name, number in (("ctl", 100), *((name, number) for number, name in enumerate(self.HOSTS, 1))):
            self.node(name, number)
        self.before = ["nsenter", f"--net=/run/netns/{self.prefix}ctl"]     # not ip netns exec, which hides cgroups
        self.must(*self.before, "slurmctld", "-c")
        for name in self.HOSTS:
            (self.place / f"spool.n{name}").mkdir()
            self.must("nsenter", f"--net=/run/netns/{self.prefix}{name}", "slurmd", "-N", f"n{name}")
        self.assertTrue(lib.wait_for(lambda: self.asked("sinfo", "-h", "-o", "%T").split() == ["idle"], 60))

    def namespace(self, name):
        self.must("ip", "netns", "add", self.prefix + name)
        self.addCleanup(self.must, "ip", "netns", "del", self.prefix + name)
        self.addCleanup(self.empty, name)

    def node(self, name, number):
        self.namespace(name)
        self.must("ip", "-n", self.prefix + name, "link", "add", "v", "type", "veth", "peer", "name", f"to{name}", "netns", self.prefix + "hub")
        self.must("ip", "-n", self.prefix + "hub", "link", "set", f"to{name}", "master", "hub", "up")
        self.must("ip", "-n", self.prefix + name, "address", "add", f"10.98.0.{number}/24", "dev", "v")
        for device in ("v", "lo"):
            self.must("ip", "-n", self.prefix + name, "link", "set", device, "up")

    def kill(self, file):
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((self.place / file).read_text()), signal.SIGTERM)

    def inside(self, name):
        return [int(pid) for pid in self.must("ip", "netns", "pids", self.prefix + name).split()]

    def empty(self, name):
        for pid in self.inside(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def asked(self, *words):
        return self.must(*self.before, *words)

    def nothing_is_left(self):
        self.assertTrue(lib.wait_for(lambda: not self.asked("squeue", "-h") and all(len(self.inside(name)) == 1 for name in self.HOSTS), 30))
        self.assertEqual(list(self.place.glob("tmp.*")), [])

    def test_all_pairs(self):
        self.mesh("--inventory", "slurm:", "--nodes", "3", "--partition", "p")
        self.assertEqual(self.pairs(), self.all())
        self.nothing_is_left()

    def test_killed_and_cancelled(self):
        """By SIGKILL, and by scancel: nothing stays; --resume measures the rest in an allocation of the same nodes."""
        for kind in ("kill", "cancel"):
            with contextlib.suppress(FileNotFoundError):
                (self.place / "o").unlink()
            with self.begun("--inventory", "slurm:", "--nodes", "3", "--set", "length=3") as proc:
                self.assertTrue(lib.wait_for(lambda: (self.place / "o").exists() and self.pairs(), 60))
                if kind == "kill":
                    proc.kill()
                else:
                    self.asked("scancel", self.asked("squeue", "-h", "-o", "%i").strip())
                said = proc.communicate(timeout=60)[0]
            self.nothing_is_left()
        self.assertIn("the allocation has ended", said)
        self.resume("slurm:na,nb,nc")
        self.assertEqual(self.pairs(), self.all())
        self.nothing_is_left()

    def test_a_node_that_dies(self):
        with self.begun("--inventory", "slurm:", "--nodes", "3", "--set", "length=3") as proc:
            self.assertTrue(lib.wait_for(lambda: (self.place / "o").exists() and self.pairs(), 60))
            self.empty("c")
            said = proc.communicate(timeout=200)[0]
        self.assertRegex(said, "slurm:nc: .*; runs not tried")
        self.assertLessEqual({("a", "b"), ("b", "a")}, set(self.pairs()))


@unittest.skipIf(NO_PODMAN, NO_PODMAN)
class Podman(Real):
    """The image of deploy/Containerfile with a shell, read-only, without capabilities."""
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
        self.name, graph = f"mesh{os.getpid()}", self.place / "storage"
        (self.place / "storage.conf").write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{graph}/graph"\nrunroot = "{graph}/run"\n')
        (self.place / "containers.conf").write_text(f'[network]\nnetwork_backend = "netavark"\nnetwork_config_dir = "{graph}/networks"\n[engine]\n'
                                                    f'runtime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\ntmp_dir = "{graph}/tmp"\n')
        self.env.update(CONTAINERS_CONF=str(self.place / "containers.conf"), CONTAINERS_STORAGE_CONF=str(self.place / "storage.conf"))
        root = self.place / "root"
        for folder in ("bin", "tmp", "src"):
            (root / folder).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        for tool in ("sh", "mktemp", "mkfifo", "head", "tar", "cat", "wc", "sleep", "rm", "ls"):
            (root / "bin" / tool).symlink_to("busybox")
        for program in (lib.netperf(), lib.netserver()):        # with their libraries
            shutil.copy(program, root)
            for word in lib.must(["ldd", program]).split():
                if word.startswith("/") and not (root / word[1:]).exists():
                    (root / word[1:]).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(word, root / word[1:])
        self.must("sh", "-c", "tar -C root -c . | podman import -c 'ENV PATH=/:/bin' - mesh")
        self.must("podman", "network", "create", self.name)
        self.addCleanup(self.must, "podman", "network", "rm", "-f", self.name)
        for host in self.HOSTS:
            self.must("podman", "run", "-d", "--init", "--name", self.name + host, "--network", self.name, "--read-only", "--cap-drop=all", "--user", "65534:65534",
                      "--label", "app=mesh", *self.LIMITS, "mesh", "sleep", "600")
            self.addCleanup(self.must, "podman", "rm", "-f", "-t", "0", self.name + host)

    def nothing_is_left(self):
        for host in self.HOSTS:
            self.assertTrue(lib.wait_for(lambda host=host: len(self.must("podman", "top", self.name + host, "pid").split()) == 3, 20),
                            self.must("podman", "top", self.name + host, "pid", "ppid", "state", "args"))
            self.assertEqual(self.must("podman", "exec", self.name + host, "ls", "/tmp"), "")

    def test_podman(self):
        """All pairs; one is stopped in the middle and started again; SIGKILL."""
        with self.begun("--inventory", "podman:label=app=mesh", "--set", "length=3") as proc:
            self.assertTrue(lib.wait_for(lambda: (self.place / "o").exists() and self.pairs(), 60))
            self.must("podman", "kill", self.name + "c")
            said = proc.communicate(timeout=120)[0]
        self.assertIn(f"podman:{self.name}c: it is exited: podman start {self.name}c", said)
        self.must("podman", "start", self.name + "c")
        self.resume("podman:label=app=mesh")
        self.assertEqual(self.pairs(), self.all())
        with self.begun("--inventory", "podman:label=app=mesh", "--set", "length=30", "--force") as proc:
            time.sleep(6)
            proc.kill()
        self.nothing_is_left()

    def test_docker(self):
        """No docker: the stand-in of that name is podman."""
        (self.place / "docker").write_text('#!/bin/sh\nexec podman "$@"\n')
        (self.place / "docker").chmod(0o755)
        self.mesh("--inventory", "docker:label=app=mesh")
        self.assertEqual(self.pairs(), self.all())
        self.nothing_is_left()

    def test_kubectl(self):
        """No cluster: the stand-in answers in kubectl's JSON, and execs into the containers."""
        addresses = [self.must("podman", "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", self.name + host).strip() for host in self.HOSTS]
        pods = [{"metadata": {"name": self.name + host, "namespace": "net"}, "spec": {"nodeName": host}, "status": {"phase": "Running", "podIP": address}}
                for host, address in zip(self.HOSTS, addresses)]
        (self.place / "pods").write_text(json.dumps({"items": pods}))
        (self.place / "kubectl").write_text(self.KUBECTL)
        (self.place / "kubectl").chmod(0o755)
        self.mesh("--inventory", "kubectl:app=mesh", "--namespace", "net")
        self.assertEqual(self.pairs(), self.all())
        self.nothing_is_left()

    @unittest.skipUnless(shutil.which("ansible-inventory"), "no ansible-inventory here: ansible-core")
    def test_connections_of_an_inventory(self):
        """ssh (a stand-in that leads into a container), podman and local, as Ansible reads them."""
        gateway = self.must("podman", "network", "inspect", self.name, "-f", "{{range .Subnets}}{{.Gateway}}{{end}}").strip()
        (self.place / "ssh").write_text(f"#!/bin/sh\nfor last; do :; done\nexec podman exec -i {self.name}b sh -c \"$last\"\n")
        (self.place / "ssh").chmod(0o755)
        second = self.must("podman", "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", self.name + "b").strip()
        (self.place / "hosts.ini").write_text(f"[rack]\na ansible_connection=containers.podman.podman ansible_host={self.name}a\nb ansible_host={second}\n"
                                              f"[rest]\nc ansible_connection=local netmesh_address={gateway}\n")
        self.mesh("--inventory", "hosts.ini", "--set", "port=19765")
        self.assertEqual(self.pairs(), self.all())
        self.nothing_is_left()


if __name__ == "__main__":
    for reason in filter(None, (NO_SLURM, NO_PODMAN)):
        print(f"SKIP: {reason}", flush=True)
    lib.unit_main()
