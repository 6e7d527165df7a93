"""The command: which parts run on which servers, where their report goes."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import report
from bench.context import ROOT, WORK, Context, Skipped, default_data
from bench.run import run_parts
from bench.served.context import ServedContext
from bench.served.parts import NAMES, runner
from bench.served.world import endpoints_from, made

LATEST = report.REPORTS / "served.json"
"""The last full run; it is committed."""
LOCAL = report.REPORTS / "local" / "served.json"
"""The last run of some parts, or of a quick one; it is not."""

_EPILOG = """\
parts:
{parts}

examples:
  python -m bench.served                              everything, some ten minutes; writes bench/reports/served.json
  python -m bench.served --quick                      few repetitions and small boards
  python -m bench.served --only commits units         these parts alone
  python -m bench.served --endpoints ./stack.env      on other local servers, as 'pulse-kg up --dir' starts them

Counts of round trips and of units hold for a deployment. Times do not: an emulator stands for AWS, and all servers share this machine.
"""


def main(arguments: Sequence[str]) -> int:
    """Runs the benchmark and gives the exit code: 1 where there are no servers."""
    options = _parser().parse_args(arguments)
    names = {name: what for name, what in NAMES.items() if not options.only or name in options.only}
    whole = len(names) == len(NAMES) and not options.quick
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="served-", dir=WORK) as scratch:
            context = Context(options.quick, options.data, Path(scratch))
            with made(context, endpoints_from(options.endpoints)) as world:
                run = ServedContext(context.quick, context.data, context.scratch, world)
                found, parts = run_parts(run, names, runner, options.calm)
                found["servers"] = world.facts()
    except Skipped as reason:
        print(f"The benchmark of the served form can't run: {reason}", file=sys.stderr)
        return 1
    path: Path = options.output or (LATEST if whole else LOCAL)
    report.write(_ordered(found), path)
    if options.json:
        sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")
    else:
        report.show(found, parts)
    print(f"Written to {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}", file=sys.stderr)
    return 0


def _ordered(found: dict[str, Any]) -> dict[str, Any]:
    """What was measured on what comes before what was measured."""
    first = ("format", "made_at", "pulse_kg", "revision", "quick", "machine", "servers")
    return {**{name: found[name] for name in first}, **found}


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, NAMES))
    parser = argparse.ArgumentParser(
        prog="python -m bench.served",
        description="Measure the served form of Pulse KG on local servers: round trips, units, boards of different sizes, concurrency.",
        epilog=_EPILOG.format(parts="\n".join(f"  {name:<{width}}  {what}" for name, what in NAMES.items())),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few repetitions, small boards")
    parser.add_argument("--only", nargs="+", choices=tuple(NAMES), metavar="NAME", help="run these parts alone")
    parser.add_argument("--endpoints", type=Path, metavar="FILE", help="where the local servers are (default: as --store aws finds them)")
    parser.add_argument("--json", action="store_true", help="the report as one JSON document on standard output, instead of tables")
    parser.add_argument("--calm", type=float, default=0.0, metavar="SECONDS", help="before each part, wait so long for a quiet machine")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the report there")
    parser.add_argument("--data", type=Path, default=default_data(), metavar="DIR", help="the test data (default: ../shared/data)")
    return parser
