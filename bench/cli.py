"""The command: which parts run, where their report goes."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import aims, machine, report
from bench.context import ROOT, WORK, Context, Part, Skipped, default_data
from bench.parts import NAMES, runner
from pulse_kg import __version__

_FORMAT = 1

_EPILOG = """\
parts:
{parts}

examples:
  python -m bench                          everything, some ten minutes; writes bench/reports/latest.json
  python -m bench --quick                  few repetitions and small boards, in less than a minute
  python -m bench --only sessions http     these parts alone
  python -m bench --quick --only start --json | python -m json.tool
  python -m bench --calm 300               wait for a quiet moment before each part
  pulse-kg bench --quick                   the same, from anywhere

A quick run, and one of some parts, is written to bench/reports/local/latest.json, which git ignores.
"""


def main(arguments: Sequence[str]) -> int:
    """Runs the benchmark and gives the exit code."""
    options = _parser().parse_args(arguments)
    names = [name for name in NAMES if not options.only or name in options.only]
    whole = len(names) == len(NAMES) and not options.quick
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=WORK) as scratch:
        context = Context(options.quick, options.data, Path(scratch))
        made, parts = _run(context, names, options.calm)
    path: Path = options.output or (report.LATEST if whole else report.LOCAL)
    report.write(made, path)
    if options.json:
        sys.stdout.write(json.dumps(made, ensure_ascii=False) + "\n")
    else:
        report.show(made, parts)
    print(f"Written to {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}", file=sys.stderr)
    return 0


def _run(context: Context, names: Sequence[str], patience: float) -> tuple[dict[str, Any], dict[str, Part]]:
    made: dict[str, Any] = {
        "format": _FORMAT,
        "made_at": machine.now(),
        "pulse_kg": __version__,
        "revision": machine.revision(ROOT),
        "quick": context.quick,
        "machine": machine.facts(context.scratch),
    }
    parts: dict[str, Part] = {}
    skipped: dict[str, str] = {}
    noise: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for number, name in enumerate(names, 1):
        print(f"[{number}/{len(names)}] {name}: {NAMES[name]}", file=sys.stderr)
        if patience and not machine.calm(patience):
            print(f"  the machine was not quiet for {patience:.0f} s; measuring all the same", file=sys.stderr)
        before, started = machine.noise(), time.monotonic()
        try:
            parts[name] = runner(name)(context)
        except Skipped as reason:
            skipped[name] = str(reason)
            continue
        seconds[name] = round(time.monotonic() - started, 1)
        noise[name] = {"before": before, "after": machine.noise()}
    figures = {name: {**part.figures, "notes": part.notes} for name, part in parts.items()}
    return {**made, "aims": aims.judged(figures), "parts": figures, "skipped": skipped, "seconds": seconds, "noise": noise}, parts


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, NAMES))
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure Pulse KG on this machine: sessions, starts, searches, and the quality of what it proposes.",
        epilog=_EPILOG.format(parts="\n".join(f"  {name:<{width}}  {what}" for name, what in NAMES.items())),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few repetitions, small boards")
    parser.add_argument("--only", nargs="+", choices=tuple(NAMES), metavar="NAME", help="run these parts alone")
    parser.add_argument("--json", action="store_true", help="the report as one JSON document on standard output, instead of tables")
    parser.add_argument("--calm", type=float, default=0.0, metavar="SECONDS", help="before each part, wait so long for a quiet machine")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the report there")
    parser.add_argument("--data", type=Path, default=default_data(), metavar="DIR", help="the test data (default: ../shared/data)")
    return parser
