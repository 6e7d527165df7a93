"""Loaded boards, kept for the next run: a store's file, and which node came of which line of the data."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from bench import synthetic
from bench.context import WORK, Context
from bench.world import BOARD, TimedEmbedder, Writer, calling, make_agent, make_boards, opened
from pulse_kg.adapters.sqlite.schema import MIGRATIONS
from pulse_kg.bootstrap import Container
from pulse_kg.ports.embedder import Embedder

_LOADER = 1  # to be raised when the same data are loaded otherwise
_PER_SESSION = 500
_copies = count()


@dataclass(frozen=True)
class LoadedBoard:
    """A board that is loaded.

    Attributes:
        size: Its nodes.
        path: The store's file, not to be written to.
        ids: Key of a node in the data → its id.
        seconds: How long it took to load, the embedding included.
    """

    size: int
    path: Path
    ids: dict[str, str]
    seconds: float

    def copy(self, context: Context, *, folder: Path | None = None) -> Path:
        """A copy of the file for one measurement."""
        target = (folder or context.scratch) / f"board-{self.size}-{next(_copies)}.db"
        shutil.copyfile(self.path, target)
        return target


@contextmanager
def writer_on(board: LoadedBoard, path: Path, embedder: Embedder) -> Iterator[tuple[Writer, Container]]:
    """A writer on a copy of a board, as an agent of its own."""
    timed = TimedEmbedder(embedder)
    with opened(path, timed) as container:
        key = make_agent(container, "writer")
        yield Writer(calling(container, key), dict(board.ids), timed), container


def loaded(context: Context, size: int, embedder: Embedder, *, board_id: str = BOARD) -> LoadedBoard:
    """A board of so many nodes, from an earlier run where there is one.

    Args:
        context: The run.
        size: How many nodes.
        embedder: The model of its vectors.
        board_id: What the board is called; ids of nodes depend on it.
    """
    name = f"{'board' if board_id == BOARD else board_id}-{size}-{digest(context, embedder)}"
    path, facts = WORK / f"{name}.db", WORK / f"{name}.json"
    if not (path.is_file() and facts.is_file()):
        _load(context, size, embedder, path, facts, board_id)
    known = json.loads(facts.read_text("utf-8"))
    return LoadedBoard(size, path, known["ids"], known["seconds"])


def digest(context: Context, embedder: Embedder) -> str:
    """What a loaded board depends on beside its size and name, in short."""
    parts = (context.data_file(synthetic.GENERATOR).read_bytes(), synthetic.SEED, MIGRATIONS, embedder.info().digest, _LOADER)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _load(context: Context, size: int, embedder: Embedder, path: Path, facts: Path, board_id: str) -> None:
    nodes = iter(synthetic.board(context, size))
    making = context.scratch / path.name
    started = time.monotonic()
    with opened(making, embedder, create=True) as container, context.progress(f"loading a board of {size} nodes", size) as advance:
        make_boards(container, [board_id])
        writer = Writer(calling(container, make_agent(container, "loader", [board_id])), {}, board_id=board_id)
        number = 0
        while some := list(islice(nodes, _PER_SESSION)):
            number += 1
            writer.session(f"load-{number}", some, propose=False)
            for _ in some:
                advance()
    shutil.copyfile(making, path)
    making.unlink()
    facts.write_text(json.dumps({"ids": writer.ids, "seconds": round(time.monotonic() - started, 1)}), "utf-8")
