"""Supersedence must stay free of cycles."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping


def find_cycle(edges: Iterable[tuple[str, str]], known: Mapping[str, Iterable[str]]) -> list[str] | None:
    """The first cycle that new edges close among themselves and with the known ones.

    Args:
        edges: New edges, newer end first, in the order in which they are added.
        known: Newer end → older ends of what is there already.

    Returns:
        The ids along the cycle, the start repeated at the end; None if there is none.
    """
    below: dict[str, list[str]] = {src: sorted(dsts) for src, dsts in known.items()}
    for src, dst in edges:
        path = _path(below, dst, src)
        if path is not None:
            return [src, *path]
        below.setdefault(src, []).append(dst)
    return None


def closes_cycle(src: str, dst: str, edges: Iterable[tuple[str, str]], known: Mapping[str, Iterable[str]]) -> list[str] | None:
    """The cycle that one more edge closes, as `find_cycle` would find it, in one search instead of one for each edge.

    Args:
        src: Newer end of the edge.
        dst: Its older end.
        edges: The edges added before it, newer end first, in order; cycles among them are not looked for.
        known: As for `find_cycle`.

    Returns:
        The ids along the cycle, from `src` to `src`; None if there is none.
    """
    below: dict[str, list[str]] = {newer: sorted(older) for newer, older in known.items()}
    for newer, older in edges:
        below.setdefault(newer, []).append(older)
    path = _path(below, dst, src)
    return None if path is None else [src, *path]


def _path(below: Mapping[str, list[str]], start: str, goal: str) -> list[str] | None:
    came: dict[str, str | None] = {start: None}
    todo = deque([start])
    while todo:
        here = todo.popleft()
        if here == goal:
            path: list[str] = []
            step: str | None = here
            while step is not None:
                path.append(step)
                step = came[step]
            return path[::-1]
        for there in below.get(here, ()):
            if there not in came:
                came[there] = here
                todo.append(there)
    return None
