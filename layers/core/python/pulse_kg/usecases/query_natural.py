"""query_natural: a question in plain words to one board, by meaning, by title, and one edge further."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.ranking import one_hop
from pulse_kg.domain.schema import NODE_TYPES, REL_TYPES, SEARCHABLE_TYPES
from pulse_kg.domain.snippets import node_snippet
from pulse_kg.domain.words import content_words
from pulse_kg.errors import InvalidArgument, Problem
from pulse_kg.ports.reading import Neighbours
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.reading import MAX_LISTED, Seen, seen
from pulse_kg.usecases.searching import Scored, best_of, by_meaning_and_title, query_vector
from pulse_kg.usecases.services import Services


@dataclass(frozen=True)
class Span:
    """A span of time: from `since`, inclusive, to `until`, exclusive; None where it is open."""

    since: Instant | None = None
    until: Instant | None = None

    def __post_init__(self) -> None:
        """Refuses a span that ends before it begins.

        Raises:
            InvalidArgument: It does.
        """
        if self.since is not None and self.until is not None and self.until < self.since:
            problem = Problem("until", "must not be earlier than 'since'")
            raise InvalidArgument("The span of time ends before it begins: exchange 'since' and 'until'.", [problem])

    def holds(self, node: Node) -> bool:
        """Whether a node is of that time."""
        return (self.since is None or node.happened_at >= self.since) and (self.until is None or node.happened_at < self.until)


@dataclass(frozen=True)
class AnswerNode:
    """A node of the answer: its score, 0..1, and the piece of its text that fits best."""

    seen: Seen
    score: float
    snippet: str

    @property
    def node(self) -> Node:
        """The node itself."""
        return self.seen.node


@dataclass(frozen=True)
class NaturalAnswer:
    """The answer.

    Attributes:
        nodes: Best first.
        edges: Those that start at one of the nodes: first those that end at one too, then by the place of their start, relationship, end.
        truncated: Whether edges were left out for their number.
    """

    nodes: tuple[AnswerNode, ...]
    edges: tuple[Edge, ...]
    truncated: bool = False


def query_natural(caller: Caller, board_id: str, query: str, span: Span, limit: int, services: Services) -> NaturalAnswer:
    """The best nodes for a question, and the edges that support them; counts a hit for each of the nodes.

    Args:
        caller: Who asks.
        board_id: The board.
        query: 1..4,000 characters.
        span: The time that the nodes are of (`Node.happened_at`).
        limit: 1..50.
        services: The ports.

    Raises:
        PermissionDenied: The board is not granted.
        EmbedderTimeout, EmbeddingModelMismatch: By the embedding.
    """
    granted_board(caller, board_id, services)
    answer = retrieve(board_id, query, span, limit, services)
    # After the snapshot: what is counted must not wait for what is read, nor the other way round.
    services.hits.count(board_id, [a.node.node_id for a in answer.nodes], now=services.clock.now())
    return answer


def retrieve(board_id: str, query: str, span: Span, limit: int, services: Services) -> NaturalAnswer:
    """One pass of retrieval on a board that is granted; counts nothing.

    Every type is found by its title, the five searchable ones also by meaning. A neighbour of an answer takes its place among them if its
    score, the answer's times 0.8 times the confidence of the edge, beats that of the last answer.

    Raises:
        EmbedderTimeout, EmbeddingModelMismatch: By the embedding.
    """
    vector = query_vector(query, services)
    with services.snapshot():
        found = by_meaning_and_title(
            board_id,
            query,
            vector,
            services,
            node_types=SEARCHABLE_TYPES,
            titled_types=NODE_TYPES,
            limit=limit,
            since=span.since,
            until=span.until,
        )
        around = services.queries.neighbours(board_id, [s.node.node_id for s in found], placed="near") if found else Neighbours([])
        edges, places = around.links, around.places
        answers = best_of([*found, *_entering(found, edges, span)], limit)
        fresh = {s.node.node_id for s in answers} - {s.node.node_id for s in found}
        if fresh:
            further = services.queries.neighbours(board_id, fresh, direction="out", placed="near")
            edges, places = [*edges, *further.links], {**places, **further.places}
        placed = seen(board_id, [s.node for s in answers], services, places)
    words = frozenset(content_words(query))
    nodes = [AnswerNode(placed[s.node.node_id], s.score, node_snippet(s.node, words)) for s in answers]
    supporting = _supporting({s.node.node_id: rank for rank, s in enumerate(answers)}, (edge for edge, _ in edges))
    return NaturalAnswer(tuple(nodes), tuple(supporting[:MAX_LISTED]), len(supporting) > MAX_LISTED)


def _entering(found: list[Scored], edges: Iterable[tuple[Edge, Node]], span: Span) -> list[Scored]:
    """The neighbours that beat the last of what was found."""
    scores = {s.node.node_id: s.score for s in found}
    best: dict[str, Scored] = {}
    for edge, other in edges:
        if other.node_id in scores or not span.holds(other):
            continue
        near = edge.src if edge.dst == other.node_id else edge.dst
        score = one_hop(scores[near], edge.confidence)
        if score > found[-1].score and (other.node_id not in best or score > best[other.node_id].score):
            best[other.node_id] = Scored(other, score)
    return list(best.values())


def _supporting(ranks: Mapping[str, int], edges: Iterable[Edge]) -> list[Edge]:
    """The edges that start at an answer, each once, in their order."""
    starting = {edge.edge_id: edge for edge in edges if edge.src in ranks}
    return sorted(starting.values(), key=lambda e: (e.dst not in ranks, ranks[e.src], REL_TYPES.index(e.rel_type), e.dst, e.edge_id))
