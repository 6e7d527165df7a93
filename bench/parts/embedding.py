"""The embedding model alone."""

from __future__ import annotations

from itertools import cycle
from typing import Any

from bench import synthetic
from bench.context import Context, Part, Table
from bench.stats import Summary, timed_ms
from pulse_kg.bootstrap import embedder_of
from pulse_kg.domain.text import embedding_text
from pulse_kg.settings import Settings

_SIZES = (1, 10, 32)
_NOTES = [
    "Short: the title of a Decision of the synthetic board, some 15 tokens; whole: title and body, some 75; long: six of them in one text, "
    "cut at 256 tokens. "
    "The load is of a new embedder in this process, so that its libraries are imported only the first time."
]


def run(context: Context) -> Part:
    """Measures batches of the sizes that sessions have."""
    decisions = [node.arguments for node in synthetic.board(context, 400) if node.arguments["node_type"] == "Decision"]
    short = [embedding_text(d["title"], "") for d in decisions]
    whole = [embedding_text(d["title"], d["body"]) for d in decisions]
    long = ["\n".join(whole[i : i + 6]) for i in range(0, 192, 6)]
    loads = [timed_ms(lambda: embedder_of(Settings()).embed(["loaded"])) for _ in range(context.times(5, 2))]
    embedder = embedder_of(Settings())
    figures: dict[str, Any] = {"load_ms": {"first": round(loads[0], 1), "again": Summary.of(loads[1:]).as_dict()}}
    rows: list[tuple[Any, ...]] = []
    kinds = (*(("short", short, n) for n in _SIZES), *(("whole", whole, n) for n in _SIZES), ("long", long, 8))
    batches = {(name, n): cycle([texts[i : i + n] for i in range(0, len(texts) - n + 1, n)]) for name, texts, n in kinds}
    taken: dict[tuple[str, int], list[float]] = {key: [] for key in batches}
    times = context.times(40, 4)
    with context.progress("batches of texts", times) as advance:
        for number in range(times + 1):
            for key, of_its_kind in batches.items():
                batch = next(of_its_kind)
                spent = timed_ms(lambda batch=batch: embedder.embed(batch))  # type: ignore[misc]
                if number:  # the first round warms the model
                    taken[key].append(spent)
            advance()
    for (name, size), values in taken.items():
        found = Summary.of(values)
        figures[f"{size}_{name}_ms"] = {**found.as_dict(), "per_text": round(found.p50 / size, 3)}
        rows.append((f"{size} {name}", found.n, found.p50, found.p95, found.min, found.max, found.p50 / size))
    rows.append(("load, first", 1, loads[0], loads[0], loads[0], loads[0], ""))
    again = Summary.of(loads[1:])
    rows.append(("load, again", again.n, again.p50, again.p95, again.min, again.max, ""))
    return Part(figures, [Table("Embedding", ("texts", "n", "p50 ms", "p95 ms", "min", "max", "ms a text"), rows)], _NOTES)
