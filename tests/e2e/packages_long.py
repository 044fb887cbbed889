"""The results of scripts/release: packages are installed in a clean Debian of this machine's release, tried over
loopback, and purged, after which nothing is left; SBOMs; checksums.

Needs root, this machine's package mirror, and some minutes. NP_PACKAGES=DIR takes an existing release of
scripts/release.
"""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator, List

import lib

TOOLS = {"debootstrap": "debootstrap", "dpkg-deb": "dpkg", "unshare": "util-linux", "ip": "iproute2"}
# Files of dpkg and apt, and caches of the loader and others.
OTHERS = re.compile(r"/(proc|sys|dev|run|tmp)(/|$)|/var/(lib/(dpkg|apt)|cache|log)/")


class Fault(Exception):
    """A command that failed, with the end of its output."""


def run(*words: str, timeout: float = 300, **popen: Any) -> str:
    with lib.Started(words, **popen) as started:
        got = started.finish(timeout)
    if got.rc != 0:
        raise Fault(f"{' '.join(words)}: status {got.rc}: {(got.out + got.err)[-1500:]}")
    return got.out


# ---- a clean Debian -----------------------------------------------------------------------------


def apt_settings() -> str:
    """Settings for another root's apt that reach this machine's mirror."""
    return "".join(line + "\n" for line in run("apt-config", "dump").splitlines()
                   if re.match(r'Acquire::(http|https|Check)\S* "', line))


def mirror() -> str:
    """This machine's Debian mirror."""
    texts = [path.read_text() for place in ("/etc/apt/sources.list", "/etc/apt/sources.list.d")
             for path in ([Path(place)] if Path(place).is_file() else sorted(Path(place).glob("*.[ls]*")))
             if path.suffix in (".list", ".sources")]
    found = re.findall(r"^(?:URIs:|deb(?: \[.*?\])?)\s+(\S+/debian)/?(?:\s|$)", "\n".join(texts), re.M)
    return found[0] if found else "http://deb.debian.org/debian"


def codename() -> str:
    found = re.search(r"^VERSION_CODENAME=(\S+)$", Path("/etc/os-release").read_text(), re.M)
    assert found, "no VERSION_CODENAME in /etc/os-release"
    return found[1]


class Root:
    """A Debian installation below a directory."""

    def __init__(self, place: Path) -> None:
        self.place = place
        proxy = re.search(r'^Acquire::http::Proxy "(.+)";', apt_settings(), re.M)
        env = {**os.environ, **({"http_proxy": proxy[1]} if proxy else {})}
        run("debootstrap", "--variant=minbase", codename(), str(place), mirror(), timeout=600, env=env)
        (place / "etc/apt/apt.conf.d/90mirror").write_text(apt_settings())
        shutil.copy("/etc/resolv.conf", place / "etc/resolv.conf")

    def run(self, *words: str, **env: str) -> str:
        """Run a command there in its own PID and mount namespaces, which end with it."""
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc=" + str(self.place / "proc"),
                   "chroot", str(self.place), *words,
                   env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C",
                        "HOME": "/root", **env})

    def alone(self, *words: str, **env: str) -> str:
        """Run a command there with a network of its own: loopback."""
        inner = 'ip link set lo up && exec chroot "$@"'
        return run("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
                   "--mount-proc=" + str(self.place / "proc"), "sh", "-c", inner, "alone", str(self.place), *words,
                   env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **env})

    def files(self) -> Dict[str, str]:
        """Every file with its mode, its target, and for /etc its content."""
        found = {}
        for where, folders, names in os.walk(self.place):
            for name in folders + names:
                path = Path(where, name)
                inside = "/" + str(path.relative_to(self.place))
                if OTHERS.match(inside):
                    continue
                found[inside] = oct(path.lstat().st_mode)
                if path.is_symlink():
                    found[inside] += " " + os.readlink(path)
                elif inside.startswith("/etc/") and stat.S_ISREG(path.lstat().st_mode):
                    found[inside] += " " + hashlib.sha256(path.read_bytes()).hexdigest()
        return found


# ---- the packages -------------------------------------------------------------------------------


def field(deb: Path, name: str) -> str:
    return run("dpkg-deb", "-f", str(deb), name).strip()


class Installed:
    """The packages of a release in a clean root, from before installation until after purging."""

    def __init__(self, root: Root, debs: List[Path]) -> None:
        self.root, self.debs = root, debs
        self.names = [field(deb, "Package") for deb in debs]
        for deb in debs:
            shutil.copy(deb, root.place / "tmp")
        self.before: Dict[str, str] = {}

    def dependencies(self) -> str:
        self.root.run("apt-get", "-qq", "update")
        self.root.run("apt-get", "-qq", "-y", "--no-install-recommends", "satisfy",
                      *[field(deb, "Depends") for deb in self.debs])
        self.before = self.root.files()
        return f"{len(self.before)} files before"

    def install(self) -> str:
        said = self.root.run("dpkg", "-i", *[f"/tmp/{deb.name}" for deb in self.debs])
        assert "warning" not in said, said
        verified = self.root.run("dpkg", "--verify", *self.names)
        assert not verified.strip(), verified
        new = set(self.root.files()) - set(self.before)
        assert {"/usr/bin/netperf", "/usr/bin/netserver", "/usr/lib/systemd/system/netserver.socket"} <= new, new
        wants = [name for name in new if name.startswith("/etc/systemd/")]
        assert not wants, f"enabled by its installation: {wants}"
        return f"{len(new)} new files"

    def version(self) -> str:
        told = self.root.run("netperf", "--version").splitlines()
        wanted = field(self.debs[0], "Version").rpartition("-")[0]
        assert told[0].startswith("Netperf version 2.7"), told
        assert re.fullmatch(rf"Plumbline {re.escape(wanted)} \([0-9a-f]+\)", told[1]), (told, wanted)
        scripts = self.root.run("netsweep", "--version").strip()
        assert scripts == f"netsweep (plumbline) {wanted}", (scripts, wanted)
        return told[1]

    def loopback(self) -> str:
        """The test that Debian's machines would run."""
        shutil.copy(lib.TOP / "debian" / "tests" / "loopback", self.root.place / "tmp")
        said = self.root.alone("/tmp/loopback").splitlines()
        (self.root.place / "tmp" / "loopback").unlink()
        assert said and said[-1].startswith("loopback: 2 figures of TCP_RR"), said
        return said[-1]

    def in_place_of_netperf(self) -> str:
        """Packages that depend on netperf are satisfied, and Debian's netperf conflicts with either package."""
        got = self.root.run("apt-get", "-s", "satisfy", "netperf")
        assert "0 newly installed, 0 to remove" in got, got
        fake = self.root.place / "tmp" / "fake"
        (fake / "DEBIAN").mkdir(parents=True)
        (fake / "DEBIAN" / "control").write_text(
            "Package: netperf\nVersion: 2.7.0-0.1\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: fake\n")
        run("dpkg-deb", "--build", "--root-owner-group", str(fake), str(fake) + ".deb")
        for name in self.names:
            try:
                self.root.run("dpkg", "--no-act", "-i", "/tmp/fake.deb")
            except Fault as fault:
                assert "conflicts with netperf" in str(fault) or "conflicting packages" in str(fault), fault
            else:
                raise AssertionError(f"netperf 2.7.0-0.1 would be installed beside {name}")
            self.root.run("dpkg", "--remove", name)
        shutil.rmtree(fake)
        self.root.run("dpkg", "-i", *[f"/tmp/{deb.name}" for deb in self.debs])
        return f"refused beside {' and '.join(self.names)}"

    def purge(self) -> str:
        self.root.run("dpkg", "--purge", *self.names)
        after = self.root.files()
        assert after == self.before, sorted(set(after.items()) ^ set(self.before.items()))[:20]
        left = self.root.run("dpkg-query", "-W", "-f", "${Package}\n")
        assert not set(self.names) & set(left.split()), left
        return f"{len(after)} files after"


# ---- what programs consist of -------------------------------------------------------------------

SHA256 = {"type": "object", "required": ["algorithm", "checksumValue"], "properties": {
    "algorithm": {"enum": ["SHA1", "SHA256"]}, "checksumValue": {"pattern": "^([0-9a-f]{40}|[0-9a-f]{64})$"}}}
PURL = {"type": "object", "required": ["referenceCategory", "referenceType", "referenceLocator"], "properties": {
    "referenceCategory": {"const": "PACKAGE-MANAGER"}, "referenceType": {"const": "purl"},
    "referenceLocator": {"pattern": r"^pkg:(deb|generic)/[A-Za-z0-9./%+~_-]+@[A-Za-z0-9.%+~_-]+(\?[a-z0-9=&]+)?$"}}}
IDENTIFIER = {"type": "string", "pattern": r"^SPDXRef-[A-Za-z0-9.-]+$"}
# Required members according to SPDX 2.3; there are no others.
SPDX = {
    "type": "object", "additionalProperties": False,
    "required": ["spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages",
                 "files", "relationships"],
    "properties": {
        "spdxVersion": {"const": "SPDX-2.3"}, "dataLicense": {"const": "CC0-1.0"}, "name": {"type": "string"},
        "SPDXID": {"const": "SPDXRef-DOCUMENT"}, "documentNamespace": {"pattern": r"^https://[^#\s]+$"},
        "creationInfo": {"type": "object", "required": ["created", "creators"], "properties": {
            "created": {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"},
            "creators": {"type": "array", "minItems": 1, "items": {"pattern": "^(Tool|Person|Organization): "}}}},
        "packages": {"type": "array", "minItems": 2, "items": {
            "type": "object", "additionalProperties": False,
            "required": ["SPDXID", "name", "versionInfo", "downloadLocation", "externalRefs"],
            "properties": {
                "SPDXID": IDENTIFIER, "name": {"type": "string"}, "versionInfo": {"type": "string", "minLength": 1},
                "downloadLocation": {"const": "NOASSERTION"}, "filesAnalyzed": {"const": False},
                "licenseConcluded": {"enum": ["MIT", "NOASSERTION"]}, "copyrightText": {"type": "string"},
                "licenseDeclared": {"enum": ["MIT", "NOASSERTION"]}, "homepage": {"pattern": "^https?://"},
                "primaryPackagePurpose": {"enum": ["APPLICATION", "LIBRARY"]}, "packageFileName": {"type": "string"},
                "supplier": {"pattern": "^Organization: "}, "checksums": {"type": "array", "items": SHA256},
                "externalRefs": {"type": "array", "minItems": 1, "items": PURL}}}},
        "files": {"type": "array", "minItems": 2, "items": {
            "type": "object", "required": ["SPDXID", "fileName", "checksums"], "properties": {
                "SPDXID": IDENTIFIER, "fileName": {"pattern": r"^\./"},
                "checksums": {"type": "array", "contains": {"properties": {"algorithm": {"const": "SHA1"}}},
                              "items": SHA256}}}},
        "relationships": {"type": "array", "minItems": 4, "items": {
            "type": "object", "additionalProperties": False,
            "required": ["spdxElementId", "relationshipType", "relatedSpdxElement"],
            "properties": {"spdxElementId": IDENTIFIER, "relatedSpdxElement": IDENTIFIER, "relationshipType": {
                "enum": ["DESCRIBES", "GENERATED_FROM", "DYNAMIC_LINK", "STATIC_LINK", "DEPENDS_ON"]}}}}}}


def consists_of(path: Path, link: str, wanted: Dict[str, str]) -> str:
    """The SBOM is valid, without dangling references, and has the versions of this machine's packages."""
    import jsonschema   # suite() has seen to it
    document = lib.document(path.read_text())
    jsonschema.validate(document, SPDX)
    elements = [element["SPDXID"] for element in document["packages"] + document["files"]]
    assert len(elements) == len(set(elements)), elements
    ends = {edge[end] for edge in document["relationships"] for end in ("spdxElementId", "relatedSpdxElement")}
    assert ends == {"SPDXRef-DOCUMENT", *elements}, ends ^ {"SPDXRef-DOCUMENT", *elements}
    linked = {edge["relatedSpdxElement"] for edge in document["relationships"] if edge["relationshipType"] == link}
    have = {package["name"]: package for package in document["packages"]}
    for header, pattern in wanted.items():
        name = next((name for name in have if re.fullmatch(pattern, name)), "")
        assert name and have[name]["SPDXID"] in linked, f"no {link} to what {header} comes from: {sorted(have)}"
        told = run("dpkg-query", "-W", "-f", "${Version}", name)
        assert have[name]["versionInfo"] == told, (name, have[name]["versionInfo"], told)
    return f"{len(have)} packages, {len(document['relationships'])} relationships"


# ---- the release --------------------------------------------------------------------------------


@contextlib.contextmanager
def release() -> Iterator[Path]:
    made = os.environ.get("NP_PACKAGES")
    if made:
        yield Path(made)
        return
    with tempfile.TemporaryDirectory() as place:
        out = Path(place, "release")
        print(run(str(lib.SCRIPTS / "release"), "--snapshot", "--quick", str(out), timeout=900), flush=True)
        yield out


def only(place: Path, pattern: str) -> Path:
    found = sorted(place.glob(pattern))
    assert len(found) == 1, (pattern, found)
    return found[0]


def sums(made: Path) -> str:
    run("sha256sum", "--strict", "--quiet", "-c", "SHA256SUMS", cwd=made)
    listed = {line.split(maxsplit=1)[1] for line in (made / "SHA256SUMS").read_text().splitlines()}
    there = {path.name for path in made.iterdir()} - {"SHA256SUMS"}
    assert listed == there, listed ^ there
    return f"{len(listed)} files"


def static_ones(made: Path, place: Path) -> str:
    """They run in a Debian without any of their libraries."""
    with tempfile.TemporaryDirectory() as unpacked:
        run("tar", "-xzf", str(only(made, "plumbline-*-static-*.tar.gz")), "-C", unpacked)
        folder = only(Path(unpacked), "*")
        shutil.copy(folder / "sbom.spdx.json", place)
        names = {path.name for path in folder.iterdir()}
        assert names == {"COPYING", "netperf", "netserver", "sbom.spdx.json"}, names
        return run(str(folder / "netperf"), "--version").splitlines()[1]


def obstacle() -> str:
    if os.geteuid() != 0:
        return "not root"
    lacking = [f"{tool} ({package})" for tool, package in TOOLS.items()
               if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if lacking:
        return f"no {', '.join(lacking)}: scripts/install-needed package"
    if not (lib.TOP / ".git").exists() and not os.environ.get("NP_PACKAGES"):
        return "no git tree: a release is made of a commit"
    got = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False)
    return "" if got.returncode == 0 else "no namespaces"


def use(report: lib.Report, made: Path, place: Path) -> None:
    report.case("sums", partial(sums, made))
    report.case("static programs", partial(static_ones, made, place))
    report.case("SBOM", partial(consists_of, only(made, "plumbline-*.spdx.json"), "DYNAMIC_LINK", {
        "sodium.h": r"libsodium\d+", "jansson.h": r"libjansson\d+", "seccomp.h": r"libseccomp\d+",
        "pcap.h": r"libpcap[\d.]+(t64)?", "liburing.h": r"liburing\d+", "stdio.h": "libc6"}))
    report.case("SBOM of the static programs", partial(consists_of, place / "sbom.spdx.json", "STATIC_LINK", {
        "sodium.h": "libsodium-dev", "jansson.h": "libjansson-dev", "seccomp.h": "libseccomp-dev",
        "liburing.h": "liburing-dev", "stdio.h": "libc6-dev"}))
    installed = Installed(Root(place / "root"), sorted(made.glob("*-plumbline_*.deb")))
    report.check("packages", installed.names == ["netperf-plumbline", "netserver-plumbline"], f"{installed.names}")
    for step in (installed.dependencies, installed.install, installed.version, installed.loopback,
                 installed.in_place_of_netperf, installed.purge):
        if not report.case(step.__name__.replace("_", " "), step):
            break


def suite(report: lib.Report) -> None:
    lib.skip_if(obstacle())
    lib.needs("jsonschema")
    with release() as made, tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        use(report, made, Path(place))


if __name__ == "__main__":
    lib.main(suite)
