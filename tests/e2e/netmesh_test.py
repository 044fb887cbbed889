#!/usr/bin/env python3
"""Tests of scripts/netmesh: rounds, inventories, and meshes of namespaces, which a stand-in for ssh enters."""

import cProfile
import datetime
import importlib.util
import json
import os
import pstats
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import lib
from netkit import Fault, engines, far, fleet, inventory, machine, paths, plan as plans, rounds

OBSTACLE = lib.no_lab()
NO_ANSIBLE = "" if shutil.which("ansible-inventory") else "no ansible-inventory here: ansible-core"
NO_BED = "" if shutil.which("nft") and importlib.util.find_spec("scipy") else "no nft, or no scipy: nftables python3-scipy"
PACED = f"options = '{' '.join(lib.PACED)}'\n"
# Hosts are namespaces; those in the file "dead" are unreachable.
SSH = """#!/bin/sh
for last; do name=$here; here=$last; done
host=${name##*@}
if grep -qx "$host" dead; then echo "ssh: no route to $host" >&2; exit 255; fi
exec ip netns exec "$PREFIX$host" sh -c "$last"
"""


def complete(count):
    return [(a, b) for a in range(count) for b in range(count) if a != b]


class Rounds(unittest.TestCase):
    def fewest(self, pairs):
        """The lower bound: an end has one run in a round, and a round at most one run for every two ends."""
        ends = [end for pair in pairs for end in pair]
        return max(*map(ends.count, set(ends)), -(-len(pairs) // (len(set(ends)) // 2)))

    def made(self, pairs):
        found = rounds.rounds([(str(a), str(b)) for a, b in pairs])
        self.assertEqual(sorted(number for one in found for number in one), list(range(len(pairs))))
        for one in found:
            ends = [end for number in one for end in pairs[number]]
            self.assertEqual(len(ends), len(set(ends)), pairs)
        return len(found)

    def test_all_pairs(self):
        for count in (2, 3, 4, 5, 6, 9, 16, 33, 64):
            pairs = complete(count)
            random.Random(count).shuffle(pairs)
            self.assertEqual(self.made(pairs), 2 * (count - 1 + count % 2))

    def test_some_pairs(self):
        """The fewest rounds, or one more."""
        for seed in range(400):
            some = random.Random(seed)
            pairs = [pair for pair in complete(some.randint(2, 12)) if some.random() < 0.5]
            if pairs:
                self.assertLessEqual(self.made(pairs), self.fewest(pairs) + 1, pairs)
        self.assertEqual(rounds.rounds([]), [])

    def test_of_a_plan(self):
        """Runs with the same test and repetition share a round; "here" is an end, too."""
        plan = plans.parse("p", "[axes]\ntest = ['TCP_RR', 'UDP_RR']\nclient = ['ssh:a', 'ssh:b', 'ssh:c']\n"
                           "server = ['ssh:a=1.1.1.1', 'ssh:b', 'ssh:c']\n")
        plans.between(plan, ["ssh:a,ssh:b", "ssh:b,ssh:a", "ssh:c,ssh:d"])
        for order, sizes in (("rounds", {1, 2}), ("at-once", {3}), ("interleaved", {1})):
            plan.order, plan.repetitions = order, 2
            batches = plan.batches(plan.tasks())
            self.assertEqual({len(batch) for batch in batches}, sizes)
            self.assertEqual(sum(map(len, batches)), 12)
            for batch in batches:
                self.assertEqual(len({(task.point["test"], task.repetition) for task in batch}), 1)
        self.assertEqual(plan.ends({}), ("here", "None"))


    def test_a_large_fleet(self):
        """5,000 hosts: the work grows with the requested pairs rather than with all possible ones."""
        hosts = [f"ssh:h{number}" for number in range(5000)]
        plan = plans.parse("p", "[constants]\ntest = 'TCP_RR'\n")
        plans.between(plan, [f"{hosts[number]},{hosts[(number + step) % 5000]}" for number in range(5000) for step in (1, 77)])
        plan.order = "rounds"
        with cProfile.Profile() as work:
            batches = plan.batches(plan.tasks())
        self.assertEqual(sum(map(len, batches)), 10000)
        self.assertLessEqual(len(batches), 5)
        self.assertLess(pstats.Stats(work).total_calls, 100 * 10000)


class Inventories(unittest.TestCase):
    def test_what_ssh_is_told(self):
        known = {"ansible_host": "192.0.2.7", "ansible_port": 2222, "ansible_user": "me", "ansible_ssh_private_key_file": "~/a key",
                 "ansible_ssh_common_args": "-J bastion -o Compression=yes -oLogLevel=ERROR", "other": 1}
        self.assertEqual(inventory.ssh_config({"a": known}, ["~/my own"]), "Host a\n  HostName 192.0.2.7\n  Port 2222\n  User me\n"
                         "  IdentityFile \"~/a key\"\n  ProxyJump bastion\n  Compression yes\n  LogLevel ERROR\nMatch all\n  Include \"~/my own\"\n")
        self.assertEqual([inventory.end("a", known), inventory.end("a", {**known, inventory.ADDRESS: "10.0.0.7"}),
                          inventory.end("a", {})], ["ssh:a=192.0.2.7", "ssh:a=10.0.0.7", "ssh:a"])
        for known, says in (({"ansible_connection": "community.docker.docker"}, "docker:a"), ({"ansible_connection": "podman", "ansible_host": "c"}, "podman:c"),
                            ({"ansible_connection": "kubectl", "ansible_kubectl_context": "x:y/z", "ansible_kubectl_pod": "p"}, "kubectl:x:y/z/default/p"),
                            ({"ansible_connection": "local", inventory.ADDRESS: "10.0.0.7"}, "local:a=10.0.0.7")):
            self.assertEqual(inventory.end("a", known), says)
        for bad, says in (({"ansible_connection": "winrm"}, "ansible_connection=winrm"), ({"ansible_connection": "local"}, "netmesh_address"),
                          ({"ansible_connection": "podman", "ansible_host": "-x"}, "podman:-x"),
                          ({"ansible_ssh_extra_args": "-F x"}, "-F of"), ({"ansible_ssh_extra_args": "-o 'x"}, "a: -o 'x: No closing"),
                          ({"ansible_host": "{{ ip }}"}, "a template")):
            with self.assertRaisesRegex(Fault, says):
                inventory.end("a", bad), inventory.ssh_config({"a": bad})

    def test_addresses_are_no_engines(self):
        """IPv6 addresses in HOST,HOST."""
        hosts, _ = inventory.mesh("2001:db8::1,2001:db8::2", None, {})
        self.assertEqual([one.name for one in hosts.values()], ["ssh:2001:db8::1", "ssh:2001:db8::2"])

    @unittest.skipIf(NO_ANSIBLE, NO_ANSIBLE)
    def test_ansible(self):
        with tempfile.NamedTemporaryFile("w", suffix=".ini") as file:
            file.write("[rack]\na ansible_host=192.0.2.1\nb\n[other]\nc\n[all:vars]\nansible_user=me\n")
            file.flush()
            self.assertEqual(inventory.read(file.name, "rack:!b"), (
                {"a": {"ansible_host": "192.0.2.1", "ansible_user": "me"}}, {"rack": {"a", "b"}, "other": {"c"}}))
            self.assertEqual(sorted(inventory.read(file.name)[0]), ["a", "b", "c"])
        with self.assertRaisesRegex(machine.MachineError, "failed to parse"):
            inventory.read("/nonexistent/x")


class Bed(lib.InPlace):
    """Hosts that are namespaces, on a switch."""
    HOSTS = ("a", "b", "c", "d")

    def setUp(self):
        super().setUp()
        self.prefix = f"mesh{os.getpid()}"
        for name, text in (("ssh", SSH), ("dead", "")):
            lib.executable(self.dir / name, text)
        self.namespace("switch")
        self.ip("switch", "link", "add", "hub", "type", "bridge")
        self.ip("switch", "link", "set", "hub", "up")
        for number, host in enumerate(self.HOSTS, 1):
            self.namespace(host)
            self.ip(host, "link", "add", "v", "type", "veth", "peer", "name", f"to{host}", "netns", self.prefix + "switch")
            self.ip("switch", "link", "set", f"to{host}", "master", "hub", "up")
            self.ip(host, "address", "add", f"10.94.0.{number}/24", "dev", "v")
            self.ip(host, "link", "set", "v", "up")
        (self.dir / "p.toml").write_text(f"[constants]\nlength = 1\ntest = 'UDP_RR'\n{PACED}")
        listed = {host: {inventory.ADDRESS: f"10.94.0.{number}"} for number, host in enumerate(self.HOSTS, 1)}
        for name, text in (("ansible-inventory", json.dumps({"_meta": {"hostvars": listed}})),
                           ("ansible", "hosts (4):\n" + "".join(f"  {host}\n" for host in self.HOSTS))):
            lib.executable(self.dir / name, f"#!/bin/sh\ncat <<'X'\n{text}\nX\n")

    def tearDown(self):
        self.assertTrue(lib.wait_for(lambda: not self.inside(), 20), self.inside())
        self.assertEqual([path.name for path in self.dir.glob("tmp*")], [])

    def namespace(self, name):
        lib.must(["ip", "netns", "add", self.prefix + name])
        self.addCleanup(lib.must, ["ip", "netns", "del", self.prefix + name])

    def ip(self, name, *words):
        lib.must(["ip", "-n", self.prefix + name, *words])

    def inside(self):
        found = [subprocess.run(["ip", "netns", "pids", self.prefix + host], capture_output=True, text=True, check=True).stdout
                 for host in self.HOSTS]
        return " ".join(found).split()

    def begun(self, *words, program="netmesh"):
        path = f"{self.place}:{os.environ['PATH']}"
        hosts = ["--inventory", "hosts", "--copy"] if program == "netmesh" else []
        return subprocess.Popen([str(lib.SCRIPTS / program), *hosts, "--netperf", lib.netperf(), "--netserver", lib.netserver(), *words],
                                cwd=self.place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "PATH": path, "TMPDIR": str(self.place), "PREFIX": self.prefix})

    def mesh(self, *words, status=0):
        with self.begun(*words) as proc:
            out, err = proc.communicate(timeout=120)
        self.assertEqual(proc.returncode, status, (out, err))
        return out + err

    def runs(self):
        lines = (self.dir / "o").read_text().rpartition("\n")[0].splitlines()[1:]
        return [run for run in map(json.loads, lines) if run["status"] == "ok"]

    def pairs(self):
        return [(run["point"]["client"][4], run["point"]["server"][4]) for run in self.runs()]


class LyingHosts(unittest.TestCase):
    """What a host sends is limited in size and time."""
    ENDLESS = "exec tr '\\0' x </dev/zero"

    def ssh(self, script):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        path = Path(place.name, "ssh")
        lib.executable(path, f"#!/bin/sh\n{script}\n")
        return [str(path)]

    def setUp(self):
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {*machine.ENDS, signal.SIGCHLD})
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, held)

    def test_where_files_are_kept(self):
        """The host is given up after COPY_S at the latest, whatever it does with what we send."""
        for script, says in ((self.ENDLESS, "more than 64 KiB came"), ("echo; printf x; exec sleep 600", "no answer within 2 s"),
                             ("exec sleep 600", "no answer within 1 s"), (f"{self.ENDLESS} >&2", "more than 64 KiB came"),
                             ("exec >&-; echo no route >&2", "no route"), (None, "ssh: not installed here")):
            with mock.patch.object(fleet, "COPY_S", 2), mock.patch.object(fleet, "THERE_S", 1), self.subTest(script), mock.patch.object(
                    engines.hosts, "SSH", self.ssh(script) if script else ["/nonexistent/ssh"]):
                with far.Ends(lib.netperf(), lib.netserver()) as ends:
                    (why,) = ends.prepare([{"client": "ssh:host", "host": "h"}])
                self.assertIn(f"ssh:host: {says}".replace("ssh: not", "/nonexistent/ssh: not"), why)

    BEGINS = "echo; echo /x; read -r run; echo ready 1 >&2; read -r go; echo begun 1 >&2; "

    def relayed(self, script, real=False):
        """The result of a command on a host that prints this, or runs this."""
        engine = type(engines.ROWS["local" if real else "ssh"])()
        engine.words = self.ssh(script)
        host = fleet.Host(engine, "host")
        command = fleet.Command(fleet.Way(host, engine.words[0]), ["netperf", "-l", "1"], True)
        fleet.loop().run(fleet.together([command], 60))
        fleet.loop().run(host.end())
        return command.done()

    def test_what_a_program_there_prints(self):
        done, document = self.relayed("printf out; printf {} >${1#--json=}; echo bad $2 $3 >&2; exit 3", True)
        self.assertEqual((done.exit, done.stdout, done.stderr, document), (3, "out", "bad -l 1\n", b"{}"))
        ends = "echo end 1 0 >&2; read -r get; "
        for script, says in (("", "64 KiB"), (self.BEGINS, "64 KiB"), (f"{self.BEGINS}{ends}echo got 1 99999999999 1 1; ", "32768 KiB")):
            done, document = self.relayed(script + self.ENDLESS)
            self.assertIsNone(done.exit)
            self.assertRegex(done.reason, f"^more than {says} came")
        for said in ("got 1", "got 2 1 1 1", "got 1 x 1 1", "got 1 -1 1 1", "begun", "got 1 9 9 9"):
            done, _ = self.relayed(f"{self.BEGINS}{ends}echo '{said}'")
            self.assertIsNone(done.exit, said)
            self.assertTrue(done.reason, said)

    def test_complaints(self):
        """Those beyond the first MiB are dropped, and nothing else is."""
        done, _ = self.relayed("head -c 5000000 /dev/zero >&2; echo out", True)
        self.assertEqual((done.exit, done.stdout), (0, "out\n"))
        self.assertLessEqual(len(done.stderr), machine.COMPLAINT_MOST)

    def test_an_end_while_something_begins(self):
        """A process that the shell has started but not yet recorded is killed, too."""
        host, words = fleet.Host(engines.ROWS["local"], "host"), ["sleep", str(100000 + os.getpid())]
        command = fleet.Command(fleet.Way(host, words[0]), words)
        with mock.patch.object(fleet, "SHELL", fleet.SHELL.replace('echo "$!" >', 'sleep .05; echo "$!" >')):
            fleet.loop().run(host.ready())
            fleet.loop().run(command.prepare())
            fleet.loop().run(host.end())
        left = [int(line.split()[0]) for line in lib.must(["ps", "-e", "-o", "pid=,args="]).splitlines() if line.endswith(" ".join(words))]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [])

    def test_a_command_there(self):
        self.assertIn("more than 32768 KiB", machine.ask(self.ssh(self.ENDLESS), 60).reason)
        self.assertEqual("no answer within 1 s", machine.ask(self.ssh(f"printf x; {self.ENDLESS} >&2"), 1).reason)
        self.assertEqual("no end within 1 s", machine.ask(self.ssh("exec >&- 2>&-; exec sleep 600"), 1).reason)
        done = machine.ask(self.ssh("cat; echo e >&2; exit 4"), 60, b"given")
        self.assertEqual((done.exit, done.stdout, done.stderr, done.reason), (4, "given", "e\n", ""))


class Asking(unittest.TestCase):
    def test_an_interrupt_while_the_inventory_is_asked(self):
        """Nothing was run, whatever an earlier mesh left in the file."""
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "ansible-inventory")
            lib.executable(path, "#!/bin/sh\n: >asked\nexec sleep 60\n")
            Path(place, "o.jsonl").touch()
            with lib.Started([str(lib.SCRIPTS / "netmesh"), "--inventory", "hosts", "--output", "o.jsonl"], cwd=place,
                             env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}) as one:
                self.assertTrue(lib.wait_for(Path(place, "asked").exists, 20), one.said())
                one.signal(signal.SIGTERM)
                got = one.finish(20)
        self.assertEqual((got.rc, got.err), (130, "netmesh: interrupted: nothing was run\n"))

    def test_answers_that_are_not_json(self):
        """Or of another type, or without a member; the same for kubectl and podman."""
        for text in ("", "[WARNING]: x\n{}", "[]", "{}"):
            with tempfile.TemporaryDirectory() as place, mock.patch.dict(os.environ, PATH=f"{place}:{os.environ['PATH']}"):
                for name, asks in (("ansible-inventory", lambda: inventory.read("a b")), ("kubectl", lambda: inventory.mesh("kubectl:x", None, {})),
                                   ("kubectl", lambda: engines.ROWS["kubectl"].trouble("p")), ("podman", lambda: engines.ROWS["podman"].address("c"))):
                    if (name, text) == ("ansible-inventory", "{}"):
                        continue
                    lib.executable(Path(place, name), f"#!/bin/sh\ncat <<'X'\n{text}\nX\n")
                    with self.assertRaisesRegex(machine.MachineError, f"^{name}: its output is not the expected JSON "):
                        asks()


class Tied(unittest.TestCase):
    def test_a_parent_that_is_dead_already(self):
        """Between fork and exec."""
        hears, says = os.pipe()
        parent = os.fork()
        if not parent:
            tie = machine.tied()
            if not os.fork():
                lib.wait_for(lambda parent=os.getppid(): os.getppid() != parent, 20)
                tie()
                os.write(says, b"alive")
            os._exit(0)
        os.close(says)
        os.waitpid(parent, 0)
        with open(hears, "rb") as left:
            self.assertEqual(left.read(), b"")


@unittest.skipIf(OBSTACLE, OBSTACLE)
class Mesh(Bed):
    def test_rounds(self):
        """An end is in one run at a time, and each netserver serves clients with the key."""
        proc = self.begun("p.toml", "--output", "o")
        self.addCleanup(proc.communicate)
        self.assertTrue(lib.wait_for(lambda: (self.dir / "o").exists() and self.runs(), 60))
        refused = lib.run(["ip", "netns", "exec", self.prefix + "a", lib.netperf(), "-H", "10.94.0.2", "-l", "-1", "-t", "TCP_RR"], 20)
        self.assertIn("--key-file", refused.err)
        self.assertEqual(proc.wait(60), 0)
        self.assertEqual(sorted(self.pairs()), [(a, b) for a in self.HOSTS for b in self.HOSTS if a != b])
        times = []
        for run, pair in zip(self.runs(), self.pairs()):
            begin = datetime.datetime.fromisoformat(run["started"].replace("Z", "+00:00")).timestamp()
            times.append((begin, begin + run["seconds"], set(pair)))
        for one in times:
            self.assertEqual([other for other in times if other is not one and other[2] & one[2]
                              and other[0] + 0.01 < one[1] and one[0] + 0.01 < other[1]], [])
        self.assertEqual(len({round(begin, 2) for begin, _, _ in times}), 6)

    def test_at_once(self):
        """All start when the slowest host is ready."""
        begun = self.dir / "begun"
        slow = lib.executable(self.dir / "netperf", f"#!/bin/sh\ncase \"$*\" in *dry-run*) ;; *UDP_RR*) date +%s.%N >>{begun} ;; esac\nexec {os.path.abspath(lib.netperf())} \"$@\"\n")
        ssh = self.dir / "ssh"
        ssh.write_text(ssh.read_text().replace("exec ip", 'case "$host $last" in c*UDP_RR*) sleep 1 ;; esac\nexec ip'))
        self.mesh("p.toml", "--output", "o", "--at-once", "--star", "b", "--netperf", str(slow))
        times = sorted(map(float, begun.read_text().split()))
        self.assertEqual(len(times), 6)
        self.assertLess(times[-1] - times[0], 0.9, times)
        self.assertEqual(sorted(self.pairs()), sorted([(x, "b") for x in "acd"] + [("b", x) for x in "acd"]))
        self.assertEqual(len({run["started"] for run in self.runs()}), 1)

    def test_namespaces_at_once(self):
        """They start together, too, and an end is the same with its address and without."""
        a, b = (f"netns:{self.prefix}{host}" for host in "ab")
        (self.dir / "p.toml").write_text(f"[constants]\ntest = 'UDP_RR'\nlength = 1\n{PACED}[axes]\nclient = ['{a}', '{b}']\n"
                                           f"server = ['{a}=10.94.0.1', '{b}=10.94.0.2']\n")
        with self.begun("p.toml", "--output", "o", "--order", "at-once", program="netsweep") as proc:
            said = proc.communicate(timeout=60)
        self.assertEqual((proc.returncode, len(self.runs())), (0, 2), said)
        self.assertEqual(len({run["started"] for run in self.runs()}), 1)

    def test_a_dead_host(self):
        """It is named and left out; later, only what is missing is measured."""
        (self.dir / "dead").write_text("c\n")
        said = self.mesh("p.toml", "--output", "o", "--set", "length=-100", status=1)
        self.assertIn("ssh:c: ssh: no route to c; runs not tried: ", said)
        self.assertIn("--resume --output o --copy", said)
        self.assertEqual(sorted(self.pairs()), [(a, b) for a in "abd" for b in "abd" if a != b])
        (self.dir / "dead").write_text("")
        self.mesh("--resume", "--output", "o")
        self.assertEqual(sorted(self.pairs()), [(a, b) for a in self.HOSTS for b in self.HOSTS if a != b])

    def test_a_lying_host(self):
        """It sends endlessly, whatever is run there: it is named, the others are measured, and memory is limited."""
        ssh = self.dir / "ssh"
        ssh.write_text(ssh.read_text().replace("exec ip", f'[ "$host" = c ] && {LyingHosts.ENDLESS}\nexec ip'))
        said = self.mesh("p.toml", "--output", "o", "--set", "length=-100", status=1)
        self.assertRegex(said, "ssh:c: .*more than [0-9]+ KiB came")
        self.assertEqual(sorted(self.pairs()), [(a, b) for a in "abd" for b in "abd" if a != b])

    def test_killed(self):
        for number in (9, 2):
            with self.begun("p.toml", "--output", "o", "--force", "--set", "length=60") as proc:
                self.assertTrue(lib.wait_for(lambda: len(self.inside()) > 12, 60), self.inside())
                time.sleep(0.5)
                proc.send_signal(number)
                proc.communicate()
            self.tearDown()

    @unittest.skipIf(NO_BED, NO_BED)
    def test_a_bad_next_hop(self):
        """Four links and routes by port: exactly the flows on the lossy link are named."""
        for host in "ab":
            lib.must(["ip", "netns", "exec", self.prefix + host, "sysctl", "-qw", "net.ipv4.fib_multipath_hash_policy=1",
                      "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"])
            self.ip(host, "link", "set", "lo", "up")
        hops = {"a": [], "b": []}
        for link in range(4):
            self.ip("a", "link", "add", f"l{link}", "type", "veth", "peer", "name", f"l{link}", "netns", self.prefix + "b")
            for number, (host, other) in enumerate(("ab", "ba"), 1):
                self.ip(host, "address", "add", f"10.95.{link}.{number}/24", "dev", f"l{link}")
                self.ip(host, "link", "set", f"l{link}", "up")
                hops[host] += ["nexthop", "via", f"10.95.{link}.{3 - number}"]
        for number, (host, other) in enumerate(("ab", "ba"), 1):
            self.ip(host, "address", "add", f"10.96.0.{number}/32", "dev", "lo")
            self.ip(host, "route", "add", f"10.96.0.{3 - number}/32", "src", f"10.96.0.{number}", *hops[host])
        lib.must(["ip", "netns", "exec", self.prefix + "b", "nft", "add table t; add chain t i { type filter hook input priority 0; };"
                  "add rule t i iifname l2 udp dport != 12865 numgen random mod 20 == 0 drop"])
        (self.dir / "p.toml").write_text(f"[constants]\nclient = 'netns:{self.prefix}a'\nserver = 'netns:{self.prefix}b=10.96.0.2'\n"
                                           "test = 'UDP_RR'\nflows = 64\nlength = 6\nasked_rate = 6400\n")
        with self.begun("p.toml", "--output", "o", program="netsweep") as proc:
            said = proc.communicate(timeout=60)
        self.assertEqual(proc.returncode, 0, said)
        (run,) = self.runs()
        found, _ = paths.worse(run["flows"], True)
        self.assertEqual([one.what for one in found], ["loses (%)"])
        named = set(found[0].flows)
        for number, row in enumerate(run["flows"]):
            way = lib.must(["ip", "-n", self.prefix + "a", "route", "get", "10.96.0.2", "from", "10.96.0.1", "ipproto", "udp", "sport",
                            str(row["local_port"]), "dport", str(row["remote_port"])])
            self.assertEqual("dev l2" in way, number in named, (row, way))

    def test_wrong_words(self):
        for words, says in ((["--pairs", "a:b,a"], "--pairs a: try A:B"), (["--star", "x"], "x: no host of the inventory"),
                            (["--star", "a", "--pairs", "a:b"], "give only one"), (["--host", "x"], "the inventory has the hosts"),
                            ([], "no --inventory FILE"), (["--inventory", "a,"], "1 hosts: a mesh has two")):
            self.assertIn(says, self.mesh("p.toml", *words, *(["--inventory", ""] if not words else []), status=2))


@unittest.skipIf(OBSTACLE or NO_BED, OBSTACLE or NO_BED)
class Planted(Bed):
    HOSTS = ("a", "b", "c", "d", "e")

    def test_who_is_slow(self):
        """A host that sends at half the others' rate, and a lossy pair: these are named."""
        for host in self.HOSTS:
            lib.must(["ip", "netns", "exec", self.prefix + host, "tc", "qdisc", "add", "dev", "v", "root", "tbf", "rate",
                      "20mbit" if host == "b" else "40mbit", "burst", "16k", "latency", "30ms"])
        lib.must(["ip", "netns", "exec", self.prefix + "c", "nft", "add table t; add chain t o { type filter hook output priority 0; };"
                  "add rule t o ip daddr 10.94.0.4 tcp dport != 12865 tcp sport != 12865 numgen random mod 30 == 0 drop"])
        self.mesh("--output", "o", "--set", "length=1", "--set", "options=-b 1 -w 1ms")
        self.assertEqual(len(self.runs()), 40)
        said = lib.must([str(lib.SCRIPTS / "netreport"), "--mesh", "--margin", "25", str(self.dir / "o")])     # one RTO is 20 %
        named = {(row.split()[0], re.sub(r"ssh:(\w)", r"\1", re.split("  +", row)[1])) for row in said.splitlines() if row.startswith("test=")
                 and "nothing" not in row}
        self.assertLessEqual({("test=TCP_STREAM", "b, as client"), ("test=TCP_RR", "c and d, both ways")}, named, said)
        # A pair is slow, too, when what else the machine does kept it from as much of its second as the margin: its run says so.
        kept = {re.sub(r"ssh:(\w)=\S+", r"\1", f"{run['point']['client']} to {run['point']['server']}") for run in self.runs()
                if run.get("disturbed", {}).get("share", 0) > 0.25}
        self.assertLessEqual({name for test, name in named if test == "test=TCP_STREAM"} - kept, {"b, as client", "c to d"}, said)


if __name__ == "__main__":
    lib.wants("scipy.special")
    for reason in filter(None, (OBSTACLE, NO_ANSIBLE, NO_BED)):
        print(f"SKIP: {reason}", flush=True)
    lib.unit_main()
