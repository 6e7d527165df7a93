"""Supersedence must stay free of cycles."""

from __future__ import annotations

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


def _path(below: Mapping[str, list[str]], start: str, goal: str) -> list[str] | None:
    came: dict[str, str | None] = {start: None}
    todo = [start]
    while todo:
        here = todo.pop(0)
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
