"""The runs of sweeps as a tidy table, one row per run, for R, pandas and the like."""

import io
from typing import Any, Dict, List, Sequence

from netkit import python
from netkit.results import DERIVED, ResultsError, Run, is_number, reading, within
from netkit.tables import Sweep, csv_text

ENDS = ("near", "far")
EVIDENCE = ("moved.ethtool.", "moved.nic.", "moved.qdisc.", "tc.")     # evidence that gets columns


def row_of(sweep: Sweep, run: Run) -> "Dict[str, Any]":
    """Axes, constants, the run's status, figures as printed and derived ones, and changes of counters at both ends."""
    cell = sweep.cells.get(run.place)
    more = {f"{end}.{name}": value for end in ENDS for name, value in run.evidence(end).items()
            if name.startswith(EVIDENCE) and is_number(value)}
    more.update({f"disturbed.{reason}": seconds for reason, seconds in (
        within(run.more, "disturbed", "reasons") or {}).items()})
    header = sweep.results.header
    constants = {**header.constants, **({"label": run.more["label"]} if run.more.get("label") else {})}
    return {"plan": header.plan, **constants, **run.point,
            "repetition": run.repetition, "started": run.started, "seconds": run.seconds,
            "status": run.status, "reason": run.reason(), **run.result,
            "CEILING": sweep.ceiling(cell) if cell else None,
            **{name: run.figure(name) for name in DERIVED}, **more}


def rows(sweeps: "Sequence[Sweep]") -> "List[Dict[str, Any]]":
    """All rows with the same columns, counters last; empty columns are omitted."""
    made = []
    for sweep in sweeps:
        with reading(sweep.results.path):
            made += [row_of(sweep, run) for run in sweep.results.runs]
    names = {name: "." in name or name in DERIVED for row in made for name, value in row.items()
             if value not in (None, "")}
    ordered = sorted(names, key=names.__getitem__)
    return [{name: row.get(name) for name in ordered} for row in made]


def as_csv(sweeps: "Sequence[Sweep]") -> str:
    """As CSV; missing values are empty, booleans are words."""
    made = rows(sweeps)
    cells = [[str(value).lower() if isinstance(value, bool) else value for value in row.values()] for row in made]
    return csv_text([list(made[0]), *cells])


def as_parquet(sweeps: "Sequence[Sweep]") -> bytes:
    pandas = python.need("pandas", "python3-pandas", "--tidy FILE.parquet")
    frame = pandas.DataFrame(rows(sweeps))
    for name in frame.columns:      # a column has a single type there
        kinds = {type(value) for value in frame[name].dropna()}
        if len(kinds - {int, float}) > 0 and len(kinds) > 1:
            frame[name] = frame[name].map(lambda value: None if value is None else str(value))
    out = io.BytesIO()
    try:
        frame.to_parquet(out, index=False)
    except ImportError:
        raise ResultsError("--tidy FILE.parquet needs Python's pyarrow or fastparquet beside pandas: pip "
                           "install pyarrow; or --tidy FILE.csv") from None
    return out.getvalue()
