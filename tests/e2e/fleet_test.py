#!/usr/bin/env python3
"""Tests of netmesh's engines (scripts/netkit/engines) with stand-ins for their programs, and of the analysis of
groups."""

import contextlib
import importlib.util
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

import lib
import netmesh_test
from netkit import UsageError, engines, mesh, results, tables
from netkit.gate import output

# Each enters a namespace of the bed; those named in the file "dead" are unreachable.
ENTER = """
if grep -qx "$host" dead; then echo "$0: $host is gone" >&2; exit 1; fi
exec ip netns exec "$PREFIX$host" "$@"
"""
PODMAN = """#!/bin/sh
echo "podman $*" >>calls
case $1 in
ps) printf 'a\\nb\\nc\\nd\\n'; exit ;;
inspect) for last; do :; done
	case $* in *State*) grep -qx "$last" dead && echo exited || echo running; exit ;; esac
	n=$(printf %s "$last" | tr abcdef 123456); echo '[{"NetworkSettings": {"Networks": {"n": {"IPAddress": "10.94.0.'"$n"'"}}}}]'; exit ;;
esac
host=$3; shift 3""" + ENTER
KUBECTL = """#!/bin/sh
echo "kubectl $*" >>calls
case $* in
*"get --output=json pods"*) cat pods; exit ;;
*"get --output=json nodes"*) cat nodes; exit ;;
*"get pod "*) host=$(echo "$*" | sed 's/.*get pod pod-\\([a-f]\\).*/\\1/')
	grep -qx "$host" dead && { echo "Error from server (NotFound): pods \\"pod-$host\\" not found" >&2; exit 1; }
	echo '{"metadata": {}, "status": {"phase": "Running"}}'; exit ;;
esac
while [ "$1" != -i ]; do shift; done
host=${2#pod-}; shift 3""" + ENTER
SCONTROL = """#!/bin/sh
echo "scontrol $*" >>calls
case $* in
"show hostnames"*) echo "$3" | sed 's/.*\\[/[/' | grep -q '^\\[a-d\\]$' && printf 'na\\nnb\\nnc\\nnd\\n' || echo "$3" | tr , '\\n' ;;
*"show node"*) for n in 1 2 3 4; do echo "NodeName=n$(echo $n | tr 1234 abcd) NodeAddr=10.94.0.$n State=$(grep -qx "$(echo $n | tr 1234 abcd)" dead && echo DOWN || echo IDLE) X"; done ;;
*"show topology"*) printf 'SwitchName=one Level=0 LinkSpeed=1 Nodes=na,nb\\nSwitchName=two Level=0 Nodes=nc,nd\\nSwitchName=top Level=1 Nodes=n[a-d] Switches=one,two\\n' ;;
esac
"""
SRUN = """#!/bin/sh
echo "srun $*" >>calls
while :; do case $1 in --nodelist=n*) host=${1#--nodelist=n} ;; --*) ;; *) break ;; esac; shift; done""" + ENTER
SALLOC = """#!/bin/sh
echo "salloc $*" >>calls
[ -e full ] && { echo 'salloc: error: no nodes' >&2; exit 1; }
while :; do case $1 in --*) shift ;; *) break ;; esac; done
SLURM_JOB_ID=7 SLURM_JOB_NODELIST='n[a-d]' "$@"
echo "salloc is over" >>calls
"""
STATES = "#!/bin/sh\necho \"$(basename \"$0\")\" >>calls\ncase $0 in *sinfo) echo 'nb is drained'; echo 'na is idle' ;; *) echo RUNNING ;; esac\n"


@unittest.skipIf(netmesh_test.OBSTACLE, netmesh_test.OBSTACLE)
class Fleet(netmesh_test.Bed):
    """All pairs of four hosts, one transaction each."""

    def setUp(self):
        super().setUp()
        pods = [{"metadata": {"name": f"pod-{host}", "namespace": "net"}, "spec": {"nodeName": f"worker-{host}"},
                 "status": {"phase": "Running", "podIP": f"10.94.0.{number}"}} for number, host in enumerate(self.HOSTS, 1)]
        pods.append({"metadata": {"name": "pod-x", "namespace": "net"}, "spec": {}, "status": {"phase": "Pending"}})
        nodes = [{"metadata": {"name": f"worker-{host}", "labels": {engines.kubectl.ZONE: f"z{number // 2}"}}}
                 for number, host in enumerate(self.HOSTS)]
        for name, text in (("podman", PODMAN), ("docker", PODMAN), ("kubectl", KUBECTL), ("scontrol", SCONTROL), ("srun", SRUN),
                           ("salloc", SALLOC), ("squeue", STATES), ("sinfo", STATES), ("pods", json.dumps({"items": pods})),
                           ("nodes", json.dumps({"items": nodes})), ("calls", "")):
            lib.executable(self.dir / name, text)

    def fleet(self, *words, status=0):
        return self.mesh(*words, "--output", "o", "--force", "--set", "length=-100", status=status)

    def header(self):
        return json.loads((self.dir / "o").read_text().splitlines()[0])

    def of(self, *inventory, status=0):
        return self.fleet("p.toml", "--inventory", *inventory, status=status)

    def measured(self):
        return sorted((re.sub(r"=.*", "", run["point"]["client"])[-1], re.sub(r"=.*", "", run["point"]["server"])[-1]) for run in self.runs())

    def all(self, hosts="abcd"):
        return [(a, b) for a in hosts for b in hosts if a != b]

    def test_podman(self):
        self.of("podman:label=app=x")
        self.assertEqual(self.measured(), self.all())
        self.assertEqual(self.runs()[0]["prefix"][:3], ["podman", "exec", "-i"])
        self.assertIn("podman ps --filter label=app=x", (self.dir / "calls").read_text())

    def test_options_that_need_time(self):
        """A daemon's first client makes a single transaction, without these options."""
        self.mesh("p.toml", "--inventory", "podman:a,b", "--output", "o", "--set", "options=--rate 200 --arrivals constant")
        self.assertEqual(self.measured(), self.all("ab"))

    def test_a_container_that_stops(self):
        """It is reported with its state, the others are measured, and the missing runs are measured later."""
        (self.dir / "dead").write_text("c\n")
        said = self.of("podman:a,b,c,d", status=1)
        self.assertIn("podman:c: it is exited: podman start c; runs not tried: ", said)
        self.assertEqual(self.measured(), self.all("abd"))
        (self.dir / "dead").write_text("")
        self.mesh("--inventory", "podman:a,b,c,d", "--resume", "--output", "o")
        self.assertEqual(self.measured(), self.all())

    def test_kubectl(self):
        self.of("kubectl:app=x", "--namespace", "net", "--context", "arn:aws:eks/one")
        self.assertEqual(self.measured(), self.all())
        self.assertEqual(self.header()["hosts"]["kubectl:arn:aws:eks/one/net/pod-c"], {"groups": ["zone z1"], "node": "worker-c"})
        self.assertEqual(self.runs()[0]["prefix"][:5], ["kubectl", "--context=arn:aws:eks/one", "--namespace=net", "exec", "-i"])
        (self.dir / "dead").write_text("c\n")
        said = self.of("kubectl:app=x", status=1)
        self.assertIn('kubectl:net/pod-c: kubectl: Error from server (NotFound): pods "pod-c" not found', said)
        self.assertEqual(self.measured(), self.all("abd"))

    def test_rights_that_are_missing(self):
        """One line for each missing permission, immediately: to list pods, and to exec in them."""
        kubectl = self.dir / "kubectl"
        text, forbidden = kubectl.read_text(), 'echo "Error from server (Forbidden): pods is forbidden: User me cannot {} pods" >&2; exit 1'
        for right, where in (("list", '*"get --output=json pods"*) '), ("exec", '*"exec -i pod-c"*) ')):
            kubectl.write_text(text.replace("case $* in\n", f"case $* in\n{where}{forbidden.format(right)} ;;\n", 1))
            since = time.monotonic()
            said = self.of("kubectl:app=x", status=1).splitlines()
            told = [line for line in said if "Forbidden" in line and "to go" not in line and "FAILED" not in line]
            self.assertEqual(len(told), 1, said)
            self.assertIn("kubectl: Error" if right == "list" else "kubectl:net/pod-c: Error", told[0])
            self.assertLess(time.monotonic() - since, 10 + lib.SLACK if right == "list" else 60)
        self.assertEqual(self.measured(), self.all("abd"))

    def test_a_pod_that_restarts(self):
        """In the middle of a round: its commands fail at once, the next rounds use it again, and --resume measures
        the rest."""
        with self.begun("p.toml", "--inventory", "kubectl:app=x", "--output", "o", "--set", "length=3") as proc:
            self.assertTrue(lib.wait_for(lambda: (self.dir / "o").exists() and self.runs(), 60))
            time.sleep(1)
            for pid in lib.must(["ip", "netns", "pids", self.prefix + "c"]).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            said = proc.communicate(timeout=120)
        missing = set(self.all()) - set(self.measured())
        self.assertLessEqual(len(missing), 1, said)     # none if it happened between two rounds
        self.assertEqual(proc.returncode, len(missing), said)
        self.assertTrue(all("c" in pair for pair in missing), missing)
        self.mesh("--inventory", "kubectl:app=x", "--resume", "--output", "o")
        self.assertEqual(self.measured(), self.all())
        for folder in self.dir.glob("tmp.*"):     # a real pod's files would be gone
            shutil.rmtree(folder)

    @unittest.skipIf(shutil.which("netperf") or shutil.which("netserver"), "programs in PATH")
    def test_no_programs(self):
        """One line for an end without netserver, and one for one without netperf, with the remedy."""
        for end, says in (("server = 'kubectl:pod-b=10.94.0.2'", "netserver"), ("client = 'kubectl:pod-a'\nserver = 'netns:PREb=10.94.0.2'", "netperf")):
            (self.dir / "p.toml").write_text(f"[constants]\ntest = 'UDP_RR'\n{end.replace('PRE', self.prefix)}\n")
            with self.begun("p.toml", "--output", "o", "--force", program="netsweep") as proc:
                _, err = proc.communicate(timeout=60)
            self.assertEqual(proc.returncode, 1)
            self.assertRegex(err, f"{says}: not found \\(--copy takes ours there\\)")

    def test_slurm(self):
        """It allocates nodes, runs a step on each, and releases them."""
        self.of("slurm:", "--nodes", "4", "--partition", "p")
        self.assertEqual(self.measured(), self.all())
        calls = (self.dir / "calls").read_text()
        self.assertIn("salloc --exclusive --no-kill --immediate=8 --quiet --nodes=4 --partition=p sh", calls)
        self.assertEqual(calls.count("srun --overlap"), 4, calls)
        self.assertTrue(lib.wait_for(lambda: "salloc is over" in (self.dir / "calls").read_text(), 10))
        self.assertEqual(self.header()["hosts"]["slurm:nc"], {"groups": ["switch two"], "node": "nc"})
        (self.dir / "dead").write_text("c\n")
        said = self.of("slurm:", "--nodes", "4", status=1)
        self.assertIn("slurm:nc: the node is DOWN; runs not tried", said)
        self.assertIn("--inventory 'slurm:n[a-d]'", said)
        self.assertEqual(self.measured(), self.all("abd"))

    def test_killed(self):
        """The allocation ends with netmesh."""
        with self.begun("p.toml", "--inventory", "slurm:", "--nodes", "4", "--output", "o", "--set", "length=60") as proc:
            self.assertTrue(lib.wait_for(lambda: len(self.inside()) > 12, 60), self.inside())
            proc.kill()
        self.assertTrue(lib.wait_for(lambda: "salloc is over" in (self.dir / "calls").read_text(), 10))

    def test_what_can_not_be(self):
        """One line each, immediately."""
        (self.dir / "full").write_text("")
        for words, says in ((["lxc:a"], "lxc: no such engine"), (["slurm:"], "no allocation here: run netmesh within salloc"),
                            (["slurm:", "--nodes", "9"], "salloc: error: no nodes; nb is drained"), (["podman:a,-b"], "podman:-b: try podman:HOST")):
            since = time.monotonic()
            self.assertIn(says, self.of(*words, status=1))
            self.assertLess(time.monotonic() - since, 20, words)

    def test_connections_of_an_inventory(self):
        """ssh, podman and this machine in one mesh."""
        known = {"a": {}, "b": {"ansible_connection": "containers.podman.podman"}, "c": {"ansible_connection": "kubectl", "ansible_kubectl_pod": "pod-c"},
                 "d": {"ansible_connection": "ssh", "ansible_host": "d"}}
        for number, host in enumerate(self.HOSTS, 1):
            known[host]["netmesh_address"] = f"10.94.0.{number}"
        listed = {"_meta": {"hostvars": known}, "all": {"children": ["ungrouped", "rack"]}, "rack": {"hosts": ["a"], "children": ["row"]}, "row": {"hosts": ["c"]}}
        (self.dir / "ansible-inventory").write_text(f"#!/bin/sh\ncat <<'X'\n{json.dumps(listed)}\nX\n")
        self.fleet("p.toml")
        self.assertEqual(sorted({run["point"]["client"] for run in self.runs()}), ["kubectl:pod-c=10.94.0.3", "podman:b=10.94.0.2", "ssh:a=10.94.0.1", "ssh:d=10.94.0.4"])
        self.assertEqual(self.measured(), self.all())
        self.assertEqual(self.header()["hosts"]["kubectl:pod-c"]["groups"], ["rack", "row"])

    def test_how_far_apart(self):
        """Runs that could not start together are reported."""
        podman = self.dir / "podman"
        podman.write_text(podman.read_text().replace("exec ip netns", """[ "$host" = b ] && set -- sh -c "$(printf %s "$3" | sed 's/echo "begun/sleep 1; &/')" sh "$5"\nexec ip netns"""))
        self.of("podman:a,b,c", "--at-once")
        self.assertEqual(self.measured(), self.all("abc"))
        self.assertTrue(all(run["begins_apart_s"] > 0.8 for run in self.runs()), self.runs())


class Rows(unittest.TestCase):
    def test_ends(self):
        self.assertEqual(engines.split("kubectl:a:b/c/ns/pod-1=10.0.0.1"), ["kubectl", "a:b/c/ns/pod-1", "10.0.0.1"])
        self.assertEqual(engines.plain("kubectl:a:b/c/ns/pod"), ["kubectl", "--context=a:b/c", "--namespace=ns", "exec", "-i", "pod", "--"])
        for bad in ("lxc:a", "slurm:a/b", "kubectl:ns/-x", "podman:", "docker:-x", "ssh:a=b=c", "kubectl:a b"):
            with self.assertRaises(UsageError):
                engines.split(bad)
        self.assertEqual([engines.named("slurm:n1=10.0.0.1"), engines.named("x y")], ["slurm:n1", "x y"])

    def test_whose_message_it_is(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            got = subprocess.run([lib.SCRIPTS / "netmesh", "--inventory", "a,b", "--dry-run"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((got.returncode, got.stderr), (1, "netmesh: standard output: No space left on device\n"))

    def test_their_size(self):
        """A new engine is a file of at most 80 lines."""
        for path in (lib.TOP / "scripts/netkit/engines").glob("*.py"):
            self.assertLessEqual(len(path.read_text().splitlines()), 80, path)


class Groups(unittest.TestCase):
    HOSTS = [f"slurm:s{number}" for number in range(1, 7)]
    RACKS = {"rack1": set(HOSTS[:2]), "rack2": set(HOSTS[2:4]), "rack3": set(HOSTS[4:])}

    def figures(self, seed, *planted):
        chance = random.Random(seed)
        made = {(a, b): 100 * math.exp(chance.gauss(0, 0.01)) for a in self.HOSTS for b in self.HOSTS if a != b}
        return {pair: value * math.prod(factor for bad, factor in planted if bad(*pair)) for pair, value in made.items()}

    def named(self, figures):
        uplinks, rest = mesh.judge_groups(figures, self.RACKS, False, 10)
        return [what for what, _, _ in (*uplinks, *mesh.worse(rest, False))]

    def test_an_uplink_a_host_and_a_pair(self):
        rack = self.RACKS["rack3"]
        uplink, up = (lambda a, b: (a in rack) != (b in rack), 0.4), (lambda a, b: a in rack and b not in rack, 0.4)
        slow, lossy = (lambda a, b: a == "slurm:s1", 0.5), (lambda a, b: (a, b) == ("slurm:s2", "slurm:s3"), 0.3)
        host, pair = "slurm:s1, as client", "slurm:s2 to slurm:s3"
        for planted, names in (((), []), ((uplink,), ["all pairs between rack3 and the rest"]), ((up,), ["all pairs from rack3 to the rest"]),
                               ((slow,), [host]), ((lossy,), [pair]), ((uplink, slow, lossy), ["all pairs between rack3 and the rest", host, pair])):
            wrong = [seed for seed in range(200) if self.named(self.figures(seed, *planted)) != names]
            self.assertLessEqual(len(wrong), 2, (names, [self.named(self.figures(seed, *planted)) for seed in wrong[:3]]))

    def test_a_link_that_is_shared_unevenly(self):
        """Flows that share a slow uplink get unequal parts: no pair is named for that, and no host is hidden."""
        rack = self.RACKS["rack3"]
        for bad, ends in ((lambda a, b: a == "slurm:s1", "client"), (lambda a, b: "slurm:s1" in (a, b), "client and server")):
            names, wrong = ["all pairs between rack3 and the rest", f"slurm:s1, as {ends}"], []
            for seed in range(100):
                chance = random.Random(seed)
                figures = {pair: value * (0.25 * math.exp(chance.gauss(0, 0.8)) if len(rack & set(pair)) == 1 else 1)
                           for pair, value in self.figures(seed, (bad, 0.5)).items()}
                named = self.named(figures)
                wrong += [named] * (bool(named) and named[0] == names[0] and named != names)
            self.assertLessEqual(len(wrong), 3, wrong[:3])

    def sweep(self, end, node):
        """The first of six hosts is slow as a client, and the fourth gives no result."""
        hosts = [end.format(number) for number in range(1, 7)]
        figures = {(a, b): 50.0 + number % 3 if a == hosts[0] else 100.0 + number % 3 for number, (a, b) in enumerate(
            (a, b) for a in hosts for b in hosts if a != b)}
        runs = [results.Run({"client": a, "server": b}, result={"THROUGHPUT": value}, status="failed" if hosts[3] in (a, b) else "ok")
                for (a, b), value in figures.items()]
        header = results.Header(axes=[results.Axis(name, hosts) for name in ("client", "server")], more={"hosts": {
            one: {"node": node.format(number), "groups": [f"rack{number % 2}"]} for number, one in enumerate(hosts, 1)}})
        return tables.Sweep(results.Results("f", header, runs))

    def test_bad_hosts(self):
        """By the names that the cluster uses."""
        for end, node, says in (("slurm:s{}", "s{}", "s1,s4"), ("kubectl:net/p{}", "worker-{}", "worker-1\nworker-4")):
            sweep = self.sweep(end, node)
            found = mesh.block(mesh.find(sweep, "THROUGHPUT", False), "THROUGHPUT")
            self.assertEqual(mesh.bad_hosts(sweep, [found]), says + "\n")

    def test_verdicts(self):
        """A test for each mesh, for programs; the names of tests do not depend on the findings."""
        gate = mesh.gate(mesh.find(self.sweep("slurm:s{}", "s{}"), "THROUGHPUT", False), "THROUGHPUT")
        self.assertEqual(output.ktap(gate).splitlines()[:5], ["KTAP version 1", "1..1", "# worse: 2 parts of all",
                         "# slurm:s4, in all pairs: exit status 0: nothing", "# slurm:s1, as client: 50.498 (-50 %; others 100.86)"])
        self.assertRegex(output.ktap(gate), "\nnot ok 1 all # ")
        self.assertRegex(output.junit(gate), '(?s)<testsuite name="netmesh" .*failures="1".*classname="netmesh.all"')
        meshes = {"good": {(a, b): 1.0 for a in "abcde" for b in "abcde" if a != b}, "few": {}}
        gate = mesh.gate(mesh.Found(meshes, {}, [], ["good"], {"few": "too few"}, ["a note"]), "THROUGHPUT")
        self.assertEqual(output.ktap(gate).splitlines()[1:], ["1..2", "# a note", "# equal: good: nothing is worse than the rest",
                         "ok 1 good # verdict=equal time=0ms", "# can't tell: few: too few", "ok 2 few # verdict=cant_tell time=0ms"])

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "no matplotlib here: python3-matplotlib")
    def test_heat_map(self):
        """Hosts are sorted by group; the same results give the same bytes."""
        from netkit import draw
        sweep = self.sweep("slurm:s{}", "s{}")
        found = mesh.find(sweep, "THROUGHPUT", False)
        drawn = [draw.draw_mesh(found, mesh.groups_of(sweep), "THROUGHPUT", False, "svg", 15) for _ in range(2)]
        self.assertEqual(drawn[0], drawn[1])
        names = re.findall(rb">(s\d)<", drawn[0])
        self.assertNotIn(b"e+0", draw.draw_mesh(found._replace(meshes={"all": {pair: 23456.0 for pair in found.meshes["all"]}}), {}, "", False, "svg", 15))
        self.assertEqual(names[:5], [b"s2", b"s6", b"s4", b"s1", b"s3"], names)


if __name__ == "__main__":
    lib.wants("scipy.special")
    lib.unit_main()
