"""The command: which parts run, where their report goes."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import report
from bench.context import ROOT, WORK, Context, default_data
from bench.parts import NAMES, runner
from bench.run import run_parts

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
        made, parts = run_parts(context, {name: NAMES[name] for name in names}, runner, options.calm)
    path: Path = options.output or (report.LATEST if whole else report.LOCAL)
    report.write(made, path)
    if options.json:
        sys.stdout.write(json.dumps(made, ensure_ascii=False) + "\n")
    else:
        report.show(made, parts)
    print(f"Written to {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}", file=sys.stderr)
    return 0


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
