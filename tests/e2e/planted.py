"""Links, files, pipes and directories that another user has planted in a world-writable directory where root's
commands write. They are not written to or through, and one line names them and the remedy; a user's links in his own
directory are followed. service.py has netserver's files.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Callable, NamedTuple, Tuple

import lib

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
from netkit import files
STRANGER = 65534        # as in lib.as_nobody()
SOON = 60.0
UNTOUCHED = "untouched\n"
LINK, OTHERS = f"symbolic link that another user ({STRANGER}) owns", f"belongs to another user ({STRANGER})"

# What the attacker plants, where root writes, and the error message.
PLANTS = (
    ("a link", 'ln -s "$1/target" "$2"', "", LINK),
    ("a link to nothing", 'ln -s "$1/new" "$2"', "", LINK),
    ("a file", 'echo theirs > "$2"; chmod 666 "$2"', "", OTHERS),
    ("a pipe", 'mkfifo -m 666 "$2"', "", OTHERS),
    ("a directory", 'mkdir x', "x/", OTHERS),
    ("a link in a directory", 'mkdir x; ln -s "$1/target" "x/$2"', "x/", OTHERS),
    ("a link to a directory", 'ln -s "$1" x', "x/", LINK),
)


class Command(NamedTuple):
    program: str
    name: str
    run: "Callable[[str], lib.Result]"      # given the path of the file
    needs: "Tuple[str, ...]" = ()           # Python modules


def script(name: str, *words: str) -> "Callable[..., lib.Result]":
    """A script with arguments, run in this process, as starting Python would take most of the time."""
    return partial(lib.called, lib.script(name).main, *words)


class Bed:
    def __init__(self, place: Path, port: int) -> None:
        self.place, self.port = place, port
        (place / "plan.toml").write_text('[constants]\nlength = -10\n[axes]\ntest = ["TCP_RR"]\n')
        self.results = place / "results.jsonl"
        programs = ["--netperf", lib.netperf(), "--netserver", lib.netserver(), "--local"]
        netperf = lib.command(port, "-t", "TCP_RR", "-l", "-10")
        sweep = script("netsweep", *programs, str(place / "plan.toml"))
        paced = " ".join(lib.PACED)
        gate = script("netgate", *programs, "--test", "TCP_RR", f"--a={paced}", f"--b={paced}", "--slot", "1", "--budget", "2",
                      "--no-learn")
        report = script("netreport", str(self.results))
        got = sweep("--output", str(self.results))
        assert got.rc == 0, got
        self.commands = [
            Command("netperf", "--json", lambda path: lib.run([*netperf, f"--json={path}"], SOON)),
            Command("netsweep", "--output", lambda path: sweep("--force", "--output", path)),
            Command("netsweep", "--resume", lambda path: sweep("--resume", "--output", path)),
            Command("netgate", "--output", lambda path: gate("--force", "--output", path), ("numpy", "scipy")),
            Command("netgate", "--write-criteria", lambda path: gate("--dry-run", "--write-criteria", path), ("numpy", "scipy")),
            Command("netreport", "--tidy", lambda path: report("--tidy", path)),
            Command("netreport", "--plot", lambda path: report("--plot", path), ("matplotlib",)),
        ]
        if "libpcap" not in lib.run([*netperf, "--wire"], SOON).err:
            self.commands.append(Command("netperf", "--wire", lambda path: lib.run([*netperf, f"--wire=pcap:{path}"], SOON)))

    @staticmethod
    def ready(command: Command) -> None:
        for module in command.needs:
            if not importlib.util.find_spec(module):
                raise lib.Skipped(f"no {module}")

    def folders(self) -> "Tuple[Path, Path]":
        """One directory of root's, with a file, and one that is world-writable."""
        top = Path(tempfile.mkdtemp(dir=self.place))
        ours, everyones = top / "ours", top / "tmp"
        for folder, mode in ((ours, 0o755), (everyones, 0o1777)):
            folder.mkdir()
            folder.chmod(mode)
        top.chmod(0o755)
        (ours / "target").write_text(UNTOUCHED)
        return ours, everyones


def file_for(command: Command) -> str:
    return "file" + {"--tidy": ".csv", "--plot": ".svg"}.get(command.name, "")


def attack(bed: Bed, command: Command) -> str:
    bed.ready(command)
    file = file_for(command)
    for name, plant, folder, says in PLANTS:
        ours, everyones = bed.folders()
        target, path = ours / "target", everyones / f"{folder}{file}"
        inode = target.stat().st_ino
        subprocess.run([*lib.as_nobody(), "sh", "-ec", plant, "sh", str(ours), file], cwd=everyones, check=True)
        before = sorted(everyones.rglob("*"))
        got = command.run(str(path))
        assert got.rc not in (0, None), f"{name}: status {got.rc}: {got.err}"
        lines = [line for line in got.err.splitlines() if "another user" in line]
        assert len(lines) == 1 and lines[0].startswith(f"{command.program}: "), f"{name}: {got.err}"
        for word in (str(everyones / (folder or file)), says, "(try "):
            assert word in lines[0], f"{name}: {lines[0]!r} does not say {word!r}"
        assert target.read_text() == UNTOUCHED and target.stat().st_ino == inode, f"{name}: {target.read_text()[:80]}"
        assert os.listdir(ours) == ["target"] and sorted(everyones.rglob("*")) == before, name
        if name == "a file":
            assert path.read_text() == "theirs\n", name
    return f"{len(PLANTS)} plants"


def own_links(bed: Bed, command: Command, owner: int) -> None:
    """A user's link in his own directory, used by himself or with sudo."""
    bed.ready(command)
    ours, _ = bed.folders()
    target, link = ours / f"a-{file_for(command)}", ours / file_for(command)
    if command.name == "--resume":
        target.write_bytes(bed.results.read_bytes()[:-1])   # the missing part is written again
    elif command.name != "--write-criteria":                # it overwrites nothing
        target.write_text(UNTOUCHED)
    link.symlink_to(target)
    for one in (ours, link):
        os.chown(one, owner, -1, follow_symlinks=False)
    got = command.run(str(link))
    assert got.rc == 0 or (command.program == "netgate" and got.rc is not None), got
    assert link.is_symlink() and target.stat().st_size > len(UNTOUCHED), got
    assert not target.read_bytes().startswith(UNTOUCHED.encode()), got
    assert sorted(os.listdir(ours)) == sorted(["target", target.name, link.name]), os.listdir(ours)


def own_folder(bed: Bed) -> None:
    """Files for a later run are in a directory that only the user can write to."""
    ours, everyones = bed.folders()
    made = everyones / "made"
    files.own_folder(str(made))
    files.own_folder(str(made))
    assert made.stat().st_mode & 0o7777 == 0o700
    for plant in ("mkdir x", "echo theirs > x", 'ln -s "$1" x'):
        subprocess.run([*lib.as_nobody(), "sh", "-ec", plant, "sh", str(ours)], cwd=everyones, check=True)
        try:
            files.own_folder(str(everyones / "x"))
        except files.Planted as fault:
            assert "another user" in str(fault), fault
        else:
            raise AssertionError(f"{plant}: taken")
        subprocess.run([*lib.as_nobody(), "rm", "-r", "x"], cwd=everyones, check=True)
    made.chmod(0o777)
    try:
        files.own_folder(str(made))
    except files.Planted:
        return
    raise AssertionError("a folder that everybody writes was taken")


def another_home(place: Path) -> None:
    """Root does not boot what another user's cache contains."""
    home, bin_ = place / "home", place / "bin"
    kernel = home / ".cache" / "plumbline" / "kernel"
    (kernel / "boot").mkdir(parents=True)
    (kernel / "lib" / "modules" / "6" / "kernel").mkdir(parents=True)
    (kernel / "boot" / "vmlinuz-6").write_text("theirs")
    for one in (home, *home.rglob("*")):
        os.chown(one, STRANGER, -1)
    bin_.mkdir()
    for name in ("qemu-system-x86_64", "qemu-system-aarch64"):
        lib.executable(bin_ / name, f"#!/bin/sh\ntouch {place}/booted\n")
    got = lib.run(["env", "-u", "XDG_CACHE_HOME", "-u", "NETVM_KERNEL", f"HOME={home}",
                   f"PATH={bin_}:{os.environ['PATH']}", sys.executable, str(SCRIPTS / "netvm"), "run", "--", "true"], SOON)
    assert got.rc == 1 and not (place / "booted").exists(), got
    lib.error_line(got, "netvm", str(home), OTHERS, "(try ")


def suite(report: lib.Report) -> None:
    if os.geteuid() != 0:
        lib.skip("not root")
    with tempfile.TemporaryDirectory() as name, lib.Daemon() as daemon:
        place = Path(name)
        place.chmod(0o755)
        bed = Bed(place, daemon.port)
        report.case("netvm in another user's home", partial(another_home, place))
        report.case("a folder of one's own", partial(own_folder, bed))
        for one in bed.commands:
            shown = f"{one.program} {one.name}"
            report.case(f"{shown}: planted", partial(attack, bed, one))
            for who, owner in (("root's", 0), ("the directory's owner", STRANGER)):
                report.case(f"{shown}: a link of {who}", partial(own_links, bed, one, owner))


if __name__ == "__main__":
    lib.wants("scipy", "matplotlib")
    lib.main(suite)
