"""Reads netperf's documents (doc/json.md) as results: iterations are runs of one point, options are constants."""

import json
import shlex
from typing import Any, Dict, Iterator, List, Tuple

from netkit import calls, environment, results
from netkit.units import flatten

# Names in a document for what a sweep calls otherwise.
CALLED = {"request_size": "request", "response_size": "response", "near send_size": "size",
          "far receive_size": "receive_size", "near send_buffer": "local_buffer", "far send_buffer": "remote_buffer",
          "near congestion": "congestion", "near measure_cpu": "cpu_figures"}
DEFAULTS = {"timeout_ms": 1000, "port_min": 5000, "port_max": 65535, "send_align": 8, "receive_align": 8}


def parse(data: bytes, path: str) -> results.Results:
    """Parse the concatenated documents of a file as one sweep. Raises ResultsError."""
    with results.reading(path):
        made = results.merge([sweep_of(one, path) for one in objects(data.decode("utf-8", "replace"), path)])
    made.path, made.sources = path, []
    return made


def objects(text: str, path: str) -> "Iterator[Dict[str, Any]]":
    decoder, text, at = json.JSONDecoder(), text.strip(), 0
    while at < len(text):
        try:
            found, at = decoder.raw_decode(text, at)
            found = calls.known(found)
        except (ValueError, AttributeError, RecursionError) as fault:
            raise results.ResultsError(f"{path}: not a document of netperf ({fault})") from None
        except calls.NewerDocument as fault:
            raise results.ResultsError(f"{path}: {fault}") from None
        yield found
        while text[at:at + 1].isspace():
            at += 1


def sweep_of(document: "Dict[str, Any]", path: str) -> results.Results:
    test, iterations = document.get("test") or {}, document.get("iterations") or []
    name = str(test.get("name"))
    last = iterations[-1] if iterations else {}
    label = {"label": test["brand"]} if test.get("brand") else {}
    header = results.Header(
        plan="netperf", title=name, axes=[results.Axis("test", [name])], repetitions=len(iterations),
        constants={one: value for one, value in constants(document) if value},
        started=str(document.get("started") or ""), more=label,
        environment={"client": environment.of(last.get("near")), "server": environment.of(last.get("far")) or None})
    made = results.Results(path, header, [run_of(document, name, one, label) for one in iterations])
    if not iterations:
        made.runs = [results.Run({"test": name}, command=command(document), status="failed", exit=None,
                                 more={"reason": why(document)})]
    for run in made.runs:
        run.header = header
    return made


def why(document: "Dict[str, Any]") -> str:
    return str(document.get("error") or document.get("reason") or "nothing was measured")


def command(document: "Dict[str, Any]") -> "List[str]":
    text = str(document.get("command_line") or "")
    try:
        return shlex.split(text)
    except ValueError:
        return [text]


def constants(document: "Dict[str, Any]") -> "Iterator[Tuple[str, Any]]":
    """What the command line asked for, other than defaults."""
    test, plan = document.get("test") or {}, document.get("plan") or {}
    length = test.get("length") or {}
    yield "host", test.get("host")
    yield "length", length.get("seconds") or -(length.get("bytes") or length.get("transactions") or 0)
    if test.get("family") == "AF_INET6":
        yield "family", 6
    for name in ("engine", "threads"):
        ends = [value for value in (plan.get(name) or {}).values() if value is not None]
        if ends:
            yield name, ends[0] if len(set(ends)) == 1 else ("/" if name == "engine" else ",").join(map(str, ends))
    for name, value in flatten({"flows": plan.get("flows"), **((document.get("parameters") or {}).get("asked") or {})}):
        if value != DEFAULTS.get(name.split()[-1]):
            yield CALLED.get(name, name.replace(" ", "_")), value


def run_of(document: "Dict[str, Any]", test: str, iteration: "Dict[str, Any]", label: "Dict[str, Any]") -> results.Run:
    figures = {name: value for name, value in (iteration.get("metrics") or {}).items() if value is not None}
    if figures.get("THROUGHPUT_UNITS"):
        figures["THROUGHPUT_UNITS"] = figures["THROUGHPUT_UNITS"].replace("/s", "") + "/s"
    number = iteration.get("number") or 1
    run = results.Run({"test": test}, repetition=number, number=number, started=str(iteration.get("started") or ""),
                      seconds=iteration.get("elapsed") or 0.0, command=command(document), result=figures,
                      interim=interim(document, number) or None,
                      more={**label, "evidence": calls.kept(iteration, True), **calls.disturbed([iteration]),
                            **calls.interim_flows(document, number),
                            **({"curve": document["curve"]} if document.get("curve") else {})})
    if not iteration.get("complete"):
        calls.fail(run, None, why(document))
    return run


def interim(document: "Dict[str, Any]", number: int = 0) -> "List[List[float]]":
    """Interim results of an iteration, as seconds since its start and rate; number 0: of all iterations."""
    return [[at, float(one["rate"])] for at, one in calls.interim_results(document, number)]
