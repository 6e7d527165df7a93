"""rebuild: makes a board anew in another store from its audit rows alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pulse_kg.domain.model import Board
from pulse_kg.errors import InvalidArgument, Problem
from pulse_kg.ports.boards import BoardStore
from pulse_kg.ports.commits import CommitLog
from pulse_kg.usecases.embedding import embed_texts
from pulse_kg.usecases.replay import replay_row
from pulse_kg.usecases.services import Services


def rebuild_board(board: Board, source: CommitLog, target: Services, *, progress: Callable[[int, int], None] | None = None) -> int:
    """Replays a board's audit rows into a store that does not have them yet; an interrupted rebuild goes on where it stopped.

    Equal to the source but for query_hits, last_queried_at, last_recomputed_at, relevance_score and the last digits of vectors.
    Agents, keys and open sessions are no part of the audit log and are not carried over.

    Args:
        board: The board as the source has it.
        source: The source's commit log.
        target: The store to write.
        progress: Called with commits done so far and commits in all.

    Returns:
        How many commits were replayed.

    Raises:
        InvalidArgument: The target has commits of this board that the source does not have.
        EmbeddingModelMismatch: The target was filled with another model.
    """
    present = _target_board(board, target.boards)
    rows = iter(source.audit_rows(board.board_id))
    done = 0
    for seq in range(1, present + 1):
        row = next(rows, None)
        if row is None or target.commits.audit_row(board.board_id, seq) != row:
            raise InvalidArgument(
                f"The target has commits of the board '{board.board_id}' that the source does not have. Rebuild into an empty store.",
                [Problem("to", f"commit {seq} of '{board.board_id}' is another one")],
            )
    limits = target.limits
    for row in rows:
        with target.commits.turn(board.board_id, wait_seconds=limits.call_seconds) as turn:
            plan = replay_row(row, target.graph, lambda texts: embed_texts(texts, limits.call_seconds, target))
            turn.commit(replace(plan, audit=row))
        done += 1
        if progress is not None:
            progress(present + done, board.commit_seq)
    return done


def _target_board(board: Board, boards: BoardStore) -> int:
    """Makes the board with its settings and schema where it is missing; returns its last commit."""
    boards.create(board.board_id, board.name, now=board.created_at)
    there = boards.board(board.board_id)
    if there is None:
        raise InvalidArgument(
            f"The target had a board '{board.board_id}' that was erased, and its name is not used again.", [Problem("to", "erased board")]
        )
    for key, value in board.settings.items():
        boards.set_setting(board.board_id, key, value)
    for node_type, keys in board.added_attributes.items():
        for key, kind in keys.items():
            if key not in there.added_attributes.get(node_type, {}):
                boards.add_attribute(board.board_id, node_type, key, kind)
    return there.commit_seq
