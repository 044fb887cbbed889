"""scripts/netvm: its errors; modules, libraries and tests; and in guests, how output, exit statuses and the end of a
guest are reported. The last part needs qemu and a kernel (scripts/install-needed vm).
"""

import contextlib
import hashlib
import io
import lzma
import os
import re
import shutil
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import lib
from netkit import Fault

NETVM = str(lib.SCRIPTS / "netvm")
os.environ["NETPERF"] = lib.netperf()


netvm = lib.script("netvm")
modules, image, suite, guest = netvm.modules, netvm.image, netvm.suite, netvm.guest


def obstacle() -> str:
    """Why there can be no guest here; empty if there can."""
    try:
        guest.program()
        programs = netvm.programs_of(mock.Mock(build=""))
        image.Image(modules.find(), programs, str(lib.SCRIPTS)).write(io.BytesIO())
    except Fault as fault:
        return str(fault)
    return ""


OBSTACLE = obstacle()


class Refusals(unittest.TestCase):
    """One line on stderr, with a remedy."""

    def check(self, args, status, words):
        with tempfile.TemporaryDirectory() as place, mock.patch.object(
                guest.shutil, "which", lambda name, path=None: f"/usr/bin/{name}"), mock.patch.dict(os.environ):
            kernel = Path(place, "boot", "vmlinuz-1.2")
            os.environ["NETVM_KERNEL"] = str(kernel)
            for path in (kernel, Path(place, "lib/modules/1.2/kernel/net/one.ko"), Path(place, "odd")):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"\0depends=\0")
            got = lib.called(netvm.main, *[word.replace("PLACE", place) for word in args])
        self.assertEqual(got.rc, status, got)
        self.assertRegex(got.err, f"^netvm: .*{words}.*\n$")

    def test_wrong_words(self):
        for args, words in (
                (["run"], "no command given"), (["run", "--limit", "x", "true"], "argument --limit: 'x' is not a time \\(try 120\\)"),
                (["run", "--limit", "0", "true"], "argument --limit"),
                (["run", "--cpus", "0", "true"], "argument --cpus: '0' is not a number \\(1 to 64\\)"),
                (["run", "--memory", "1", "true"], "argument --memory: '1' is not a number of MiB \\(256 to 1048576\\)"),
                (["run", "--memory", "1_500", "true"], "argument --memory: '1_500' is not"),
                (["run", "--memory", " 512 ", "true"], "argument --memory: ' 512 ' is not"),
                (["run", "--kernel", "/nonexistent", "true"], "--kernel /nonexistent: no such file"),
                (["run", "--kernel", "PLACE/odd", "true"], "does not say its version"),
                (["run", "--with", "/nonexistent", "true"], "--with /nonexistent: no such file"),
                (["test", "nonesuch"], "test nonesuch: no such guest test"),
                (["run", "--accel", "xen", "true"], "invalid choice"), (["nonesuch"], "invalid choice")):
            with self.subTest(args=args):
                self.check(args, 2, words)

    def test_what_is_missing(self):
        for args, words in (
                (["run", "--build", "PLACE", "true"], "no src/netperf in .*: build it, or name another build"),
                (["run", "--module", "nonesuch", "true"], "no module nonesuch in kernel 1.2"),
                (["run", "true"], "no virtio_pci, by which"),
                (["test", "--tests", "PLACE/boot"], "no guest tests in"),
                (["shell"], "standard input is no terminal")):
            with self.subTest(args=args), mock.patch.object(sys, "stdin", io.StringIO()), mock.patch.object(
                    image.Image, "_python", lambda *_: []), mock.patch.object(image.Image, "_tools", lambda *_: []):
                self.check(args, 1, words)

    def test_neither_qemu_nor_kernel(self):
        with mock.patch.object(guest.shutil, "which", return_value=None):
            status, _, said, _ = lib.called(netvm.main, "run", "true")
        self.assertEqual(status, 1)
        self.assertRegex(said, "^netvm: no program qemu-system-.*: scripts/install-needed vm gets .*\n$")
        with mock.patch.object(guest.shutil, "which", return_value="/bin/true"), mock.patch.object(
                modules.glob, "glob", return_value=[]), mock.patch.dict(os.environ):
            os.environ.pop("NETVM_KERNEL", None)
            status, _, said, _ = lib.called(netvm.main, "run", "true")
        self.assertEqual(status, 1)
        self.assertRegex(said, "^netvm: no kernel to boot in .*: scripts/install-needed vm gets .*\n$")

    def test_kvm_that_is_not_there(self):
        with mock.patch.object(guest.os, "access", return_value=False):
            with self.assertRaisesRegex(netvm.VmError, "--accel kvm: this user cannot open /dev/kvm"):
                guest.Guest(mock.Mock(), accel="kvm").accelerators()
            self.assertEqual(guest.Guest(mock.Mock()).accelerators(), ["tcg"])
        with mock.patch.object(guest.os, "access", return_value=True), tempfile.TemporaryDirectory() as place, \
                mock.patch.dict(os.environ, {"XDG_CACHE_HOME": place}):
            self.assertEqual(guest.Guest(mock.Mock()).accelerators(), ["kvm", "tcg"])
            guest.note_kvm_hung()
            self.assertEqual(guest.Guest(mock.Mock()).accelerators(), ["tcg"])
            for note in ({"return_value": (guest.kvm_note()[0], b"another\n")}, {"side_effect": FileNotFoundError}):
                with mock.patch.object(guest, "kvm_note", **note):
                    self.assertEqual(guest.Guest(mock.Mock()).accelerators(), ["kvm", "tcg"])


class LyingGuests(unittest.TestCase):
    """The size of a frame is limited, and sending on does not extend the time."""

    def setUp(self):
        self.guest = guest.Guest(mock.Mock())
        self.guest.port, self.there = socket.socketpair()
        self.guest.selector = selectors.DefaultSelector()
        self.guest.selector.register(self.guest.port, selectors.EVENT_READ, self.guest.got)
        for one in (self.guest.port, self.there, self.guest.selector):
            self.addCleanup(one.close)

    def test_a_long_frame(self):
        self.there.send(b"O" + struct.pack("!I", 0xffffffff))
        with self.assertRaisesRegex(netvm.VmError, "a frame of 4294967295 bytes"):
            self.guest.frame(time.monotonic() + 60)

    def test_frames_without_an_end(self):
        self.there.send(bytes(1000))
        with self.assertRaises(guest.Late):
            self.guest.frame(time.monotonic() - 1)


class Modules(unittest.TestCase):
    def test_what_a_module_needs(self):
        """In reverse loading order; with soft dependencies and aliases."""
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place, "lib/modules/1.2/kernel/net")
            folder.mkdir(parents=True)
            for name, info in (("virtio_pci", b"depends=ring,low-er"), ("ring", b"depends=low-er"),
                               ("low-er", b"depends="), ("virtio_console", b"depends=\0alias=virtio:d3*"),
                               ("odd", b"softdep=pre: soft\0depends="), ("soft_generic", b"depends="),
                               ("rest", b"depends=")):
                Path(folder, f"{name}.ko").write_bytes(b"\x7fELF\0" + info + b"\0")
            Path(place, "lib/modules/1.2/modules.builtin").write_text("kernel/net/in-it.ko\n")
            Path(place, "boot").mkdir()
            Path(place, "boot/vmlinuz-1.2").touch()
            kernel = modules.Kernel(f"{place}/boot/vmlinuz-1.2")
            names = [one.name for one in kernel.closure("virtio-pci")]
            self.assertEqual(names, ["virtio_pci", "ring", "low_er"])
            wanted = kernel.wanted(["odd", "in_it"])
            self.assertEqual({one.name for one in wanted},
                             {"virtio_pci", "ring", "low_er", "virtio_console", "odd", "soft_generic"})
            index = kernel.index(wanted)
            self.assertIn(b"kernel/net/virtio_pci.ko: kernel/net/ring.ko kernel/net/low-er.ko\n", index["modules.dep"])
            self.assertEqual(index["modules.alias"], b"alias virtio:d3* virtio_console\n")
            with self.assertRaisesRegex(netvm.VmError, "no module nonesuch"):
                kernel.wanted(["nonesuch"])

    def test_the_newest(self):
        self.assertLess(modules.by_version("/boot/vmlinuz-6.1.0-9-amd64"), modules.by_version("vmlinuz-6.1.0-10-amd64"))


class Images(unittest.TestCase):
    def test_places(self):
        for path, place in (("/bin/sh", "usr/bin/sh"), ("/lib64/ld.so", "usr/lib64/ld.so"), ("/sbin/tc", "usr/bin/tc"),
                            ("/usr/sbin/nft", "usr/bin/nft"), ("/usr/lib/x/y.so", "usr/lib/x/y.so"),
                            ("/opt/a", "opt/a")):
            self.assertEqual(image.Archive.place(path), place)

    @unittest.skipUnless(shutil.which("cpio"), "no cpio")
    def test_archive(self):
        out = io.BytesIO()
        archive = image.Archive(out)
        archive.text("a/b/c", b"\0odd\n", 0o755)
        archive.link("a/link", "b/c")
        archive.text("a/b/c", "not twice")
        archive.end()
        with tempfile.TemporaryDirectory() as place:
            subprocess.run(["cpio", "-id", "--quiet"], cwd=place, input=out.getvalue(), check=True, timeout=60)
            self.assertEqual(Path(place, "a/link").read_bytes(), b"\0odd\n")
            self.assertTrue(os.access(Path(place, "a/b/c"), os.X_OK))

    def test_libraries(self):
        self.assertTrue(any("libc" in path for path in image.libraries([lib.netperf()])))


class Kernels(unittest.TestCase):
    def test_what_is_unpacked(self):
        """What qemu can start is unpacked; other kernels and files are left as they are."""
        for kernel, taken in ((b"\x7fELF" + guest.PVH, True), (b"\x7fELF", False)):
            image = bytearray(guest.PAYLOAD) + struct.pack("<I", 8)
            image[guest.HEAD], image[guest.SETUP_SECTORS] = b"HdrS", 1
            image = bytes(image).ljust(1024 + 8, b"\0") + lzma.compress(kernel) + b"size"
            for wanted, data in ((kernel if taken else image, image), (image[1:], image[1:]), (b"", b"")):
                with tempfile.NamedTemporaryFile() as file:
                    Path(file.name).write_bytes(data)
                    self.assertEqual(guest.unpacked(file.name), wanted)


class Suite(unittest.TestCase):
    def write(self, place: str, text: str) -> "suite.Test":
        Path(place, "one.sh").write_text(text)
        return suite.find(place, ["one"])[0]

    def test_what_a_test_needs(self):
        with tempfile.TemporaryDirectory() as place:
            got = self.write(place, "# netvm: modules a b\n# netvm: with tests/unit/x\n# netvm: modules c\n"
                             "# netvm: real netperf\n# netvm: clock counted\n# netvm: limit 7\n")
            self.assertEqual((got.modules, got.files, got.real, got.counted, got.limit),
                             (["a", "b", "c"], ["tests/unit/x"], True, True, 7))
            got = self.write(place, "true\n")
            self.assertEqual((got.modules, got.files, got.real, got.counted, got.limit),
                             ([], [], False, False, suite.LIMIT))
            for line in ("limit x", "real nonesuch", "clock", "nonesuch 1"):
                with self.assertRaisesRegex(netvm.VmError, f"netvm: {line}.*: not known"):
                    self.write(place, f"# netvm: {line}\n")

    def test_results(self):
        with tempfile.TemporaryDirectory() as place:
            test = self.write(place, "true\n")
            for got, result in (({"status": 0}, ("ok", "")), ({"status": 77}, ("skip", "")),
                                ({"status": 1}, ("FAIL", "exit status 1")),
                                ({"late": True}, ("FAIL", "not done after 600 s")),
                                ({"error": "module x"}, ("FAIL", "module x"))):
                self.assertEqual(suite.judge(got, test), result)


def guests(pid: int) -> "list[int]":
    """Its children that are virtual machines, not those that test for features."""
    found = []
    for child in lib.children(pid):
        with contextlib.suppress(OSError):
            found += [child] if Path(f"/proc/{child}/comm").read_text().startswith("qemu") else []
    return found


@unittest.skipIf(OBSTACLE, f"no guest: {OBSTACLE}")
class Guests(unittest.TestCase):
    LIMIT = 400     # s; a busy machine boots a guest in a minute

    def run_it(self, *args: str) -> lib.Result:
        return lib.run([NETVM, *args], self.LIMIT)

    def test_output_and_status(self):
        """Bytes as they were written, separately; and a command that does not exist. In a single guest."""
        script = ("import hashlib, os, sys; data = bytes(range(256)) * 8000; os.write(2, hashlib.sha1(data).hexdigest()"
                  ".encode()); sys.stdout.buffer.write(data); sys.stdout.flush(); os.kill(os.getpid(), 9)")
        words, out, err = ["run", "--limit", "300", "--no-daemon", "--"], bytearray(), bytearray()
        args = netvm.parser().parse_args([*words, "true"])
        with netvm.guest_of(args, netvm.make_image(args)) as one, mock.patch.multiple(
                guest, STDOUT=out.extend, STDERR=err.extend), mock.patch.object(
                netvm, "guest_of", lambda *_: contextlib.nullcontext(one)):
            self.assertEqual(lib.called(netvm.main, *words, "python3", "-c", script).rc, 137, err)
            self.assertEqual(hashlib.sha1(out).hexdigest(), err.decode())
            self.assertEqual(len(out), 256 * 8000)
            got = lib.called(netvm.main, *words, "nonesuch")
        self.assertEqual((got.rc, got.err), (127, "netvm: in the guest: nonesuch: No such file or directory\n"))

    def test_time_is_over(self):
        got = self.run_it("run", "--limit", "1", "true")
        self.assertEqual(got.rc, 124, got.err)
        self.assertRegex(got.err, "^netvm: the guest had not started after 1 s")

    def test_tests(self):
        """One that panics the kernel, one that hangs, one that skips; they leave nothing behind."""
        with tempfile.TemporaryDirectory() as place:
            for name, text in (
                    ("a_good", "# netvm: modules dummy\ngrep -q ^dummy /proc/modules || exit 1\nip netns add left\n"
                     "setsid sleep 1000 &\necho said\n"),
                    ("b_clean", "test -z \"$(ip netns)\" || exit 1\n! pidof sleep || exit 2\n"),
                    ("c_skip", "exit 77\n"), ("d_late", "# netvm: limit 2\necho before; sleep 1000\n"),
                    ("e_panic", "echo c > /proc/sysrq-trigger\n"), ("f_after", "true\n"),
                    ("g_module", "# netvm: modules nft_nonesuch\n")):
                Path(place, f"{name}.sh").write_text(text)
            refused = self.run_it("test", "--tests", place)
            self.assertEqual((refused.rc, "no module nft_nonesuch" in refused.err), (1, True), refused)
            Path(place, "g_module.sh").unlink()
            got = self.run_it("test", "--jobs", "1", "--limit", "300", "--tests", place)
        self.assertEqual(got.rc, 1, got.err)
        lines = re.findall(r"^(ok|skip|FAIL) +(\w+)(: [\w .,]*)?", got.out, re.M)
        self.assertEqual([f"{result} {name}" for result, name, _ in lines], [
            "ok a_good", "ok b_clean", "skip c_skip", "FAIL d_late", "FAIL e_panic", "ok f_after"], got.out)
        self.assertIn("not done after 2 s", lines[3][2])
        self.assertIn("the guest has died", lines[4][2])
        self.assertIn("Kernel panic", got.out)
        self.assertIn("== a_good\nsaid\n", got.out)
        self.assertTrue(got.out.endswith("\n3 passed, 2 failed, 1 skipped\n"), got.out)

    def test_killed(self):
        """Nothing is left, however it ends."""
        for number, status in ((signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with self.subTest(signal=number), subprocess.Popen(
                    [sys.executable, NETVM, "run", "sleep", "1000"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                self.assertTrue(lib.wait_for(lambda: bool(guests(process.pid)), 60))
                qemu = guests(process.pid)
                process.send_signal(number)
                self.assertEqual(process.wait(60), status)
                self.assertTrue(lib.wait_for(lambda: not any(lib.alive(pid) for pid in qemu), 60))


if __name__ == "__main__":
    unittest.main(verbosity=2)
