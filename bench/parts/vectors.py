"""The vector search alone, on random vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.context import Context, Part, Table
from bench.stats import Summary, repeated, timed_ms
from bench.world import BOARD, make_boards, opened
from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.bootstrap import Container
from pulse_kg.domain.model import TextVector
from pulse_kg.domain.plan import CommitPlan, VectorWrite
from pulse_kg.ports.vectors import VectorIndex

_DIMENSION = 384
_CHUNK = 1_000
_QUERIES = (1, 10)
_LIMIT = 5
_NOTES = [f"The {_LIMIT} best live ones, exact, from the copy in memory; load: the first search, which makes that copy from the file."]


def run(context: Context) -> Part:
    """Measures one store for each number of vectors."""
    sizes = (1_000, 10_000) if context.quick else (1_000, 10_000, 50_000)
    figures: dict[str, Any] = {}
    rows: list[tuple[Any, ...]] = []
    generator = np.random.default_rng(7)
    for size in sizes:
        with opened(context.scratch / f"vectors-{size}.db", HashingEmbedder(), create=True) as container:
            _fill(context, container, generator, size)
            found, load = _measured(context, container.vectors, generator)
        figures[str(size)] = {"load_ms": round(load, 3), **{f"{n}_queries_ms": s.as_dict() for n, s in found.items()}}
        rows += [(size, n, s.n, s.p50, s.p95, s.min, s.max, load if n == _QUERIES[0] else "") for n, s in found.items()]
    columns = ("vectors", "queries", "n", "p50 ms", "p95 ms", "min", "max", "load ms")
    return Part(figures, [Table("Vector search", columns, rows)], _NOTES)


def _vectors(generator: np.random.Generator, count: int) -> list[bytes]:
    made = generator.standard_normal((count, _DIMENSION)).astype("<f4")
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return [row.tobytes() for row in made]


def _fill(context: Context, container: Container, generator: np.random.Generator, size: int) -> None:
    make_boards(container, [BOARD])
    with context.progress(f"filling {size} vectors", size // _CHUNK) as advance:
        for seq, start in enumerate(range(0, size, _CHUNK), 1):
            writes = tuple(
                VectorWrite(f"dec_{start + i:016x}", "Decision", live=True, text_vector=TextVector(vector))
                for i, vector in enumerate(_vectors(generator, _CHUNK))
            )
            container.vectors.apply(CommitPlan(BOARD, seq, 0, (), (), writes, (), {}, {}, {}))
            advance()


def _measured(context: Context, index: VectorIndex, generator: np.random.Generator) -> tuple[dict[int, Summary], float]:
    def search(queries: list[bytes]) -> None:
        index.nearest(BOARD, "Decision", queries, limit=_LIMIT, live_only=True)

    load = timed_ms(lambda: search(_vectors(generator, 1)))
    found: dict[int, Summary] = {}
    for count in _QUERIES:
        queries: Iterator[list[bytes]] = iter([_vectors(generator, count) for _ in range(202)])
        found[count] = repeated(lambda given=queries: search(next(given)), times=context.times(200, 30), warm_up=2)  # type: ignore[misc]
    return found, load
