"""The generated completions in real shells: bash, zsh and fish offer the options, commands and values that netperf,
netserver and the scripts know.
"""

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Dict, Set

import lib

BUILD = lib.BUILD / "doc"
SCRIPTS = ("netgate", "netlab", "netmesh", "netreport", "netsweep", "netvm")
ENGINES = re.findall(r"[{,]\s+&np_engine_(\w+)", (lib.TOP / "src/bench/engine/engine.c").read_text())
PATIENCE = 60 + lib.SLACK
SHELLS = [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)]
DUMP = tempfile.TemporaryDirectory()    # where zsh caches a thousand files of functions

# Completes $NP_LINE at the prompt, and writes what the completion adds to a file.
ZSH = r"""
PROMPT= RPROMPT=
fpath=($NP_FUNCTIONS $fpath)
zstyle ':completion:*' verbose no
autoload -Uz compinit
compinit -u -d $NP_DUMP
compadd() {
	local -a found
	if (( ! ${argv[(I)-(O|A|D)*]} )); then
		builtin compadd -O found "$@"
		print -rl -- $found >> $NP_OUT
	fi
	builtin compadd "$@"
}
ask() {
	BUFFER=$NP_LINE CURSOR=$#NP_LINE
	zle complete-word
	exit 0
}
zle -N zle-line-init ask
"""
BASH = r"""
. "$1"
read -r -a COMP_WORDS <<< "$3"
[[ $3 != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
"_$2"
printf '%s\n' "${COMPREPLY[@]}"
"""


def asked(shell: str, line: str, place: str = "/") -> Set[str]:
    """What a shell offers for the last word of a line."""
    program = line.split()[0]
    return {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}[shell](program, line, place)


def in_bash(program: str, line: str, place: str) -> Set[str]:
    spaced = re.sub(r"(--[\w-]+)=", r"\1 = ", line)     # as bash's COMP_WORDBREAKS does
    with lib.Started(["bash", "-c", BASH, "-", str(BUILD / "bash" / program), program, spaced], cwd=place) as one:
        got = one.finish(PATIENCE)
    assert got.rc == 0 and not got.err, f"{line}: {got}"
    return set(got.out.split("\n")) - {""}


def in_zsh(program: str, line: str, place: str) -> Set[str]:
    with tempfile.TemporaryDirectory() as own:
        Path(own, ".zshrc").write_text(ZSH)
        out = Path(own, "out")
        near, far = pty.openpty()
        try:
            subprocess.run(["zsh", "-i"], stdin=far, stdout=far, stderr=far, cwd=place, timeout=PATIENCE,
                           check=False, start_new_session=True, env={
                               **os.environ, "ZDOTDIR": own, "NP_FUNCTIONS": str(BUILD / "zsh"), "NP_LINE": line,
                               "NP_OUT": str(out), "NP_DUMP": f"{DUMP.name}/dump", "TERM": "xterm", "HOME": own})
            os.set_blocking(near, False)
            said = os.read(near, 1 << 16).decode(errors="replace")
        finally:
            os.close(far)
            os.close(near)
        assert not re.search(r"error|not found|parse|invalid", said), f"{line}: {said}"
        return {word.rstrip() for word in out.read_text().splitlines()} - {""} if out.exists() else set()


def in_fish(program: str, line: str, place: str) -> Set[str]:
    with lib.Started(["fish", "--no-config", "-c", "source $argv[1]; set HOME $PWD; complete -C $argv[2]",
                      str(BUILD / "fish" / f"{program}.fish"), line], cwd=place) as one:
        got = one.finish(PATIENCE)
    assert got.rc == 0 and not got.err, f"{line}: {got}"
    return {re.sub(r"^--[\w-]+=", "", text.partition("\t")[0]) for text in got.out.splitlines()} - {""}


# ---- what is known ------------------------------------------------------------------------------

@lru_cache(None)
def script_options(script: str, *command: str) -> Set[str]:
    """All options in the help of a script."""
    text = lib.must([sys.executable, str(lib.SCRIPTS / script), *command, "--help"])
    return set(re.findall(r"^  (?:-h, )?(--[\w-]+)", text, re.M)) | set(
        re.findall(r"^  --ipv6, (--no-ipv6)", text, re.M))


def includes(shell: str, line: str, wanted: "Set[str]", place: str = "/") -> Set[str]:
    have = asked(shell, line, place)
    assert wanted and wanted <= have, f"{shell}: {line!r}: {sorted(wanted - have)} not in {sorted(have)}"
    return have


def offers(shell: str, line: str, wanted: "Set[str]", place: str = "/") -> None:
    have = asked(shell, line, place)
    assert have == wanted, f"{shell}: {line!r}: {sorted(have)}, not {sorted(wanted)}"


def commands_and_options_of_scripts(shell: str) -> None:
    for script in ("netgate", "netreport", "netsweep"):
        includes(shell, f"{script} --", script_options(script))
    offers(shell, "netlab ", {"up", "set", "check", "exec", "status", "down"})
    offers(shell, "netvm ", {"run", "shell", "test"})
    for command in ("run", "test"):
        includes(shell, f"netvm {command} --", script_options("netvm", command))
    for command in ("up", "check", "exec"):
        have = includes(shell, f"netlab {command} --", script_options("netlab", command))
        assert ("--rate" in have) == (command == "up"), (shell, have)


def values_of_scripts(shell: str) -> None:
    offers(shell, "netsweep --order ", {"given", "random", "interleaved", "rounds", "at-once"})
    offers(shell, "netlab check --progress a", {"auto", "always"})
    offers(shell, "netreport --format l", {"latex"})
    if shell != "bash":     # bash does not match by itself
        includes(shell, "netgate --metric thr", {"THROUGHPUT"})
    if shell == "fish":
        offers(shell, "netreport --format CS", {"csv"})
    offers(shell, "netgate --format=k", {"ktap"})
    offers(shell, "netlab up --emulator n", {"netem"})
    offers(shell, "netlab exec ", {"client", "server"})
    offers(shell, "netvm run --accel k", {"kvm"})
    offers(shell, "netgate --metric P99_", {"P99_LATENCY", "P99_LATENESS"})
    offers(shell, "netreport --figure LOSS_", {"LOSS_PERCENT"})
    includes(shell, "netgate --test TCP_", {"TCP_STREAM", "TCP_RR", "TCP_CRR"})
    assert any("UDP_STREAM" in word for word in asked(shell, "netgate --test TCP_RR,UDP_S")), shell
    assert {word.rstrip("=") for word in asked(shell, "netsweep --set cong")} == {"congestion"}, shell
    assert not asked(shell, "netsweep --repeat "), shell
    includes(shell, "netlab exec client bas", {"bash"})
    includes(shell, "netvm run -- bas", {"bash"})
    known = set(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())
    offers(shell, "netlab set --congestion ", known | {"default"})


def files_and_plans(shell: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        for name in ("mine.toml", "other.jsonl"):
            Path(place, name).touch()
        Path(place, "folder").mkdir()
        includes(shell, "netsweep ", {"latency", "lab-buffers", "mine.toml"}, place)
        includes(shell, "netgate ", {"nic", "mine.toml"}, place)
        includes(shell, "netreport ", {"other.jsonl"}, place)
        for line in ("netsweep --output ", "netgate --criteria ", "netreport --plot "):
            includes(shell, line, {"other.jsonl"}, place)
        history = {word.rstrip("/") for word in asked(shell, "netgate --history ", place)}
        assert history == {"folder"}, (shell, history)
        if shell == "fish":
            for line in ("netreport ~/", "netreport $PWD/", 'netreport "', "netsweep --output ~/"):
                assert any(word.endswith("other.jsonl") for word in asked(shell, line, place)), line


def labs(shell: str) -> None:
    """Names of labs, as netlab status prints them."""
    names = {re.sub("^netlab-|-client$", "", path.name) for path in Path("/run/netns").glob("netlab-*-client")}
    have = asked(shell, "netlab down --name ")
    still = {re.sub("^netlab-|-client$", "", path.name) for path in Path("/run/netns").glob("netlab-*-client")}
    assert names & still <= have <= names | still, (shell, names, have)


def a_lab_that_is_up(shell: str) -> None:
    name = f"complete{os.getpid()}"
    namespace = f"netlab-{name}-client"
    subprocess.run(["ip", "netns", "add", namespace], check=True, timeout=PATIENCE)
    try:
        offers(shell, f"netlab status --name {name[:-1]}", {name})
    finally:
        subprocess.run(["ip", "netns", "delete", namespace], check=True, timeout=PATIENCE)


def options_of_netperf_and_netserver(shell: str) -> None:
    tests = re.findall(r"(?m)^([A-Z]\w+) ", lib.must([lib.netperf(), "--list-tests"]))
    includes(shell, "netperf -t ", set(tests))
    for line, commands in (("netperf -", [[lib.netperf(), "--help=all"]]), ("netserver -", [[lib.netserver(), "--help"]]),
                           ("netperf -- -", [[lib.netperf(), "-t", test, "--", "-h"] for test in tests])):
        helps = "".join(got.out + got.err for got in (lib.run(command, PATIENCE) for command in commands))
        known = set(re.findall(r"(?m)(?:^  (?:-\w[^\n]*?, )?)(--[\w-]+)", helps))
        assert len(known) > 25, known
        includes(shell, f"{line}-", known)
        if shell == "bash":     # zsh asks before it lists a hundred
            includes(shell, line, set(re.findall(r"(?m)^  (-\w)\b", helps)))
    assert "--test" not in asked(shell, "netperf -t TCP_RR -- --"), shell
    for line in ("netperf -l -", "netperf -- -m -", "netperf -- --send-size ", "netserver -p -"):
        offers(shell, line, set())      # a value is due
    includes(shell, "netperf -c --", {"--test"})    # its rate is optional
    offers(shell, "netperf -- -k --sen", {"--send-size"})
    with tempfile.TemporaryDirectory() as place:
        Path(place, "secret.key").touch()
        for line in ("netperf --key-file ", "netperf --passphrase-file ", "netperf -F ", "netperf --json=",
                     "netserver --key-file ", "netserver --access-file ", "netserver --metrics-file ", "netserver --key-file=",
                     "netserver --fill-dir ", "netserver --access-file=", "netserver --metrics-file="):
            includes(shell, line, {"secret.key"}, place)
        for colon in (":", " : ") if shell == "bash" else (":",):     # bash may split it there
            have = asked(shell, f"netperf --wire=pcap{colon}{place}/", place)
            assert any(word.endswith("secret.key") for word in have), (shell, colon, have)
        assert not asked(shell, f"netperf --json {place}/", place), shell   # it takes a file after "=" only


def netperf_and_netserver(shell: str) -> None:
    for line in ("netperf -t tcp_c", "netperf --test TCP_C", "netperf --test=Tcp_C"):
        offers(shell, line, {"TCP_CRR", "TCP_CC"})
    assert "UUID" not in asked(shell, "netperf -k "), shell     # -k of a test has another meaning
    offers(shell, "netperf -P ", {"0", "1"})
    includes(shell, "netperf --arrivals ", {"constant", "poisson"})
    includes(shell, "netperf --engine ", {"list", *ENGINES})
    includes(shell, "netperf --engine s", {"sync", "spin"})
    offers(shell, "netperf -t TCP_RR -- -k p99_", {"P99_LATENCY", "P99_LATENESS"})
    assert any(word.endswith("UUID") for word in asked(shell, "netperf -- -o THROUGHPUT,uui")), shell
    offers(shell, "netperf -- -T ", {"tcp", "mptcp", "udp", "udplite", "sctp", "dccp"})


def syntax() -> None:
    """Each shell can parse its file, and shellcheck accepts those for bash."""
    for shell in SHELLS:
        for path in sorted((BUILD / shell).iterdir()):
            words = [shell, "--no-config", "-n"] if shell == "fish" else [shell, "-n"]
            got = lib.run([*words, str(path)], PATIENCE)
            assert got.rc == 0 and not got.err, f"{path}: {got}"
            assert "\n@" not in path.read_text(), path
    for script in (*SCRIPTS, "netperf", "netserver") if shutil.which("shellcheck") else ():
        got = lib.run(["shellcheck", str(BUILD / "bash" / script)], PATIENCE)
        assert got.rc == 0, got


def a_wrong_call_is_refused() -> None:
    for words in ([], ["bash"], ["csh", "netlab"], ["bash", "netperf"], ["bash", "netlab", "netlab"], ["bash", "netlab", "true"],
                  ["bash", "netperf", "true", "true"], ["manual", "netserver"], ["manual", "netlab", "true"]):
        got = lib.run([sys.executable, str(lib.SCRIPTS / "mkdoc"), *words], PATIENCE)
        assert got.rc == 2 and got.err.startswith("usage: ") and not got.out, got


def main() -> None:
    if not (BUILD / "zsh" / "_netlab").exists():
        lib.skip(f"no completions in {BUILD}: this build has no python3, or is for another machine")
    tests: "Dict[str, bool]" = {}
    for shell in ("bash", "zsh", "fish"):
        if shell not in SHELLS:
            print(f"SKIP: no {shell}: apt-get install {shell}", flush=True)
            continue
        for test in (commands_and_options_of_scripts, values_of_scripts, files_and_plans, labs, options_of_netperf_and_netserver,
                     netperf_and_netserver, *((a_lab_that_is_up,) if os.geteuid() == 0 and shutil.which("ip") else ())):
            test(shell)
            tests[f"{shell}: {test.__name__}"] = True
            print(f"ok {shell}: {test.__name__}", flush=True)
    syntax()
    a_wrong_call_is_refused()
    print(f"{len(tests) + 2} tests passed", flush=True)


main()
