"""Runs the parts of a benchmark one after the other, each with the machine's noise before and after it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from bench import aims, machine
from bench.context import ROOT, Context, Part, Skipped
from pulse_kg import __version__

_FORMAT = 1

_C = TypeVar("_C", bound=Context)


def run_parts(
    context: _C, names: Mapping[str, str], runner: Callable[[str], Callable[[_C], Part]], patience: float
) -> tuple[dict[str, Any], dict[str, Part]]:
    """The report, and the parts that were measured.

    Args:
        context: The run.
        names: The parts, and what each measures.
        runner: Gives the function of a part.
        patience: Seconds that each part waits for a quiet machine.
    """
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
    for number, (name, what) in enumerate(names.items(), 1):
        print(f"[{number}/{len(names)}] {name}: {what}", file=sys.stderr)
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
