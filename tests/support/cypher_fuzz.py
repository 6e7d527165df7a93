"""Tries to break the query engine: queries by chance, and mutations of them by words and by bytes, over one of two boards of a store.

    python -m tests.support.cypher_fuzz --seconds 600 --report bench/reports/fuzz.json

Each text is answered, or refused in one of the ways that a caller is told of. Anything else is a finding: a crash, a run that takes longer
than its budget allows, a write, a word of the board beside, an answer that can't be told as JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from pulse_kg.cypher.budget import Budget, Limits
from pulse_kg.cypher.encode import encode
from pulse_kg.cypher.engine import compile_query, run
from pulse_kg.domain.schema import REL_TYPES
from pulse_kg.errors import InvalidCypher, PulseError, QueryTimeout, ResourceExhausted, UnsafeCypher
from pulse_kg.ports.graph_source import GraphSource
from tests.support.cypher_author import Author
from tests.support.world import START, World, opened

OWN, OTHER = "zirconium", "palladium"
"""The board that is asked, and the one beside it, whose name stands in every value that it holds."""
LIMITS = Limits(seconds=5.0, steps=100_000, elements=20_000, held_rows=10_000, requests=200)
"""Bounds of a run: small, so that many runs go into a minute."""
HANGS_AFTER = LIMITS.seconds + 5.0
"""Seconds: with its budget no run takes that long, not even on a machine that is busy."""
MOST_ROWS = 200
ALLOWED: tuple[type[PulseError], ...] = (InvalidCypher, UnsafeCypher, ResourceExhausted, QueryTimeout)
_KEPT_FINDINGS = 50
_POOL = 400
"""Queries that are kept for mutation."""

# What mutations are made of.

WORDS = (
    "MATCH OPTIONAL WHERE WITH RETURN UNWIND UNION ALL CALL EXISTS COUNT COLLECT AS IN IS NULL NOT AND OR XOR CASE WHEN THEN ELSE END "
    "DISTINCT ORDER BY ASC DESC SKIP LIMIT STARTS ENDS CONTAINS CREATE SET DELETE MERGE REMOVE LOAD FOREACH YIELD EXPLAIN PROFILE "
    "all any none single reduce shortestPath allShortestPaths count collect sum avg min max percentileCont stDev size keys labels type "
    "nodes relationships id properties range split substring replace reverse toString toInteger toFloat toBoolean toUpper trim datetime "
    "date duration timestamp coalesce head last tail length startNode endNode exists true false null n m r p x"
).split()
SIGNS = "( ) [ ] { } , . : ; | = <> < <= > >= =~ + - * / % ^ .. $ -> <- --> <-- -- *1..3 *0..2 * *.. |: !".split()
VALUES = (
    "0 1 -1 2 0.5 1e308 -1e-308 9223372036854775807 -9223372036854775808 0xff '' 'a' \"b\" '%' '.*' '(a+)+$' 'P1D' "
    "'2026-01-01T00:00:00Z' [] {} [1,2,3] [null] {a:1} $p $q null true"
).split()
SEEDS = (
    "MATCH (n:Decision) WHERE n.title CONTAINS 'queue' RETURN n.id, n.title ORDER BY n.created_at DESC LIMIT 5",
    "MATCH p = (a)-[*1..3]->(b) WHERE a <> b RETURN [n IN nodes(p) | n.title], length(p) LIMIT 10",
    "MATCH (a:Decision)-[r:supersedes]->(b) RETURN a, r, b",
    "MATCH (n) OPTIONAL MATCH (n)-[r]-(m) RETURN labels(n), count(r), collect(DISTINCT m.title)",
    "MATCH (n) WITH labels(n) AS l, count(*) AS c WHERE c > 1 RETURN l, c ORDER BY c DESC",
    "UNWIND range(1, 10) AS x RETURN x, x % 3, x / 2, 2 ^ x",
    "MATCH (n) WHERE EXISTS { MATCH (n)-[:depends_on]->(m) WHERE m.relevance > 0.1 } RETURN n{.id, .title, all: 1}",
    "MATCH (n) RETURN COUNT { (n)--() } AS degree, COLLECT { MATCH (n)-->(m) RETURN m.id } AS far",
    "MATCH (a:Decision), (b:Constraint), p = shortestPath((a)-[*]-(b)) RETURN p",
    "MATCH (n) WHERE n.title =~ '(?i).*queue.*' RETURN reduce(s = '', w IN split(n.title, ' ') | s + left(w, 1))",
    "MATCH (n) WHERE n.created_at >= datetime() - duration({days: 30}) RETURN n.created_at, date(n.created_at).year",
    "CALL { MATCH (n) RETURN n ORDER BY n.id LIMIT 2 } MATCH (n)-[r]-(m) RETURN type(r) AS t, m.id AS i "
    "UNION MATCH (x) RETURN labels(x)[0] AS t, x.id AS i",
    "MATCH (n {id: $p}) RETURN n, properties(n), keys(n)",
    "RETURN CASE WHEN 1 < 2 <= 3 THEN 'a' ELSE null END AS c, [x IN [1, 2, null] WHERE x > 1 | x * 2] AS l, all(x IN [true, null] WHERE x)",
    "EXPLAIN MATCH (n)-[r]->(m) WHERE n.id = 'x' RETURN m",
    "PROFILE MATCH (n:Bug)-[*0..2]-(m) RETURN count(*)",
)
STRANGE = (
    *("\x00", "\ufeff", "\u200b", "\u202e", "\ud800", "é", "ﬁ", "𝕏", "\r", "\x1b", "ＭＡＴＣＨ"),
    *("`", "'", '"', "\\", "/*", "*/", "//", "\\u0000"),
)


class Mutator:
    """Changes texts.

    Args:
        random: Where its choices come from.
        names: More words: labels, types, properties, ids.
    """

    def __init__(self, random: Random, names: Sequence[str]) -> None:
        self.random = random
        self.words = (*WORDS, *SIGNS, *VALUES, *names)

    def by_words(self, text: str, other: str) -> str:
        """Some words are left out, doubled, exchanged, replaced, put in, or taken from another text."""
        pieces = re.findall(r"'[^']*'|\"[^\"]*\"|\w+|\s+|.", text, re.DOTALL) or [""]
        others = re.findall(r"\w+|\s+|.", other, re.DOTALL) or [""]
        for _ in range(self.random.choices((1, 2, 3, 6), (5, 3, 2, 1))[0]):
            at, to = self.random.randrange(len(pieces)), self.random.randrange(len(pieces))
            match self.random.randrange(7):
                case 0:
                    del pieces[min(at, to) : min(at, to) + self.random.randint(1, 3)]
                case 1:
                    pieces[to:to] = pieces[at : at + self.random.randint(1, 8)]
                case 2:
                    pieces[at], pieces[to] = pieces[to], pieces[at]
                case 3:
                    pieces[at] = self.random.choice(self.words)
                case 4:
                    pieces.insert(at, f" {self.random.choice(self.words)} ")
                case 5:
                    start = self.random.randrange(len(others))
                    pieces[at:at] = others[start : start + self.random.randint(1, 12)]
                case _:
                    opened, closed = self.random.choice((("(", ")"), ("[", "]"), ("{", "}"), ("CALL {", "}"), ("EXISTS {", "}"), ("-", "")))
                    pieces.insert(max(at, to), closed)
                    pieces.insert(min(at, to), opened)
            if not pieces:
                pieces = [""]
        return "".join(pieces)

    def by_bytes(self, text: str) -> str:
        """Some bytes are changed, left out or put in; what is no UTF-8 becomes a lone surrogate or a mark."""
        data = bytearray(text.encode(errors="surrogatepass"))
        for _ in range(self.random.randint(1, 6)):
            at = self.random.randrange(len(data) + 1)
            match self.random.randrange(4):
                case 0:
                    data[at : at + 1] = bytes([self.random.randrange(256)])
                case 1:
                    del data[at : at + self.random.randint(1, 4)]
                case 2:
                    data[at:at] = self.random.choice(STRANGE).encode(errors="surrogatepass")
                case _:
                    data[at:at] = data[at : at + self.random.randint(1, 20)]
        return data.decode(errors=self.random.choice(("replace", "surrogateescape", "ignore")))


# The boards.


@dataclass(frozen=True)
class Ground:
    """A store with two boards.

    Attributes:
        world: The whole.
        source: Reads the first board.
        own_ids: Ids of its nodes and edges.
        other_ids: Those of the board beside it.
    """

    world: World
    source: GraphSource
    own_ids: tuple[str, ...]
    other_ids: tuple[str, ...]

    @property
    def canaries(self) -> tuple[str, ...]:
        """What stands in no answer, unless it stood in the query."""
        return (OTHER, *self.other_ids)

    def changes(self) -> int:
        """How many rows were written to the store so far."""
        store: Any = self.world.container.store
        with store._database.reading() as connection:
            return int(connection.total_changes)


def tell(world: World, mark: str) -> tuple[str, ...]:
    """Makes a board with nodes of some types, and edges; gives their ids."""
    world.board(mark)
    agent = world.agent(f"teller of {mark}", boards=(mark,))
    session = agent.begin(f"spec_{mark}", 1, board_id=mark)
    decisions = [
        session.decide(f"The {mark} queue number {n} is first in, first out", f"So {mark} said.", section=f"{mark}-{n}") for n in range(4)
    ]
    others = [
        session.add(node_type, f"{node_type} of the {mark} queue", f"So {mark} was built.")
        for node_type in ("Constraint", "Requirement", "Bug", "Learning", "Entity")
    ]
    for far in decisions[1:]:
        session.edge(decisions[0], "depends_on", far, reason=f"{mark} asked for it")
    session.edge(decisions[1], "relates_to", decisions[2], reason=f"{mark} asked for it")
    session.edge(decisions[3], "contradicts", others[0], reason=f"{mark} asked for it")
    session.edge(others[3], "validates", others[2], reason=f"{mark} asked for it")
    answer = session.commit()
    return (*(added["node_id"] for added in answer["applied"]["added"]), *(edge["edge_id"] for edge in answer["edges_added"]))


@contextmanager
def ground() -> Iterator[Ground]:
    """Two boards in memory."""
    with opened() as world:
        own, other = tell(world, OWN), tell(world, OTHER)
        yield Ground(world, world.container.store.sources.of(OWN), own, other)


def board_author(random: Random) -> Author:
    """Writes queries of what a board has."""
    return Author(
        random,
        labels=("Decision", "Constraint", "Bug", "Entity"),
        types=("depends_on", "relates_to", "validates", *REL_TYPES[:2]),
        number_keys=("relevance", "confidence", "commit_seq", "query_hits"),
        text_keys=("title", "content", "id", "status", "created_at", "board_id", "embedding"),
        bool_keys=("curated",),
    )


# The run.


@dataclass
class Tally:
    """What is in the report."""

    outcomes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)
    slowest_seconds: float = 0.0
    slowest: str = ""

    def find(self, what: str, query: str, told: str) -> None:
        """Takes note of a finding."""
        self.outcomes[what] += 1
        if len(self.findings) < _KEPT_FINDINGS:
            self.findings.append({"what": what, "query": ascii(query), "told": told[:1_000]})


class Fuzzer:
    """Makes texts and runs them.

    Args:
        ground: The boards.
        seed: Says which texts.
    """

    def __init__(self, ground: Ground, seed: int) -> None:
        self.ground, self.random = ground, Random(seed)
        self.author = board_author(self.random)
        names = (*ground.own_ids[:5], *ground.other_ids[:5], OTHER, "Decision", "depends_on", "title", "board_id", "embedding", "id")
        self.mutator = Mutator(self.random, names)
        self.pool = list(SEEDS)
        self.tally = Tally()

    def text(self) -> tuple[str, str]:
        """A text and how it was made."""
        if self.random.random() < 0.25:
            text = self.author.query().text
            if len(self.pool) < _POOL:
                self.pool.append(text)
            return "written", text
        chosen, other = self.random.choice(self.pool), self.random.choice(self.pool)
        if self.random.random() < 0.7:
            return "words", self.mutator.by_words(chosen, other)
        return "bytes", self.mutator.by_bytes(chosen)

    def params(self) -> dict[str, Any]:
        """Parameters; some name what is on the board beside."""
        values = (None, 1, -1, 0.5, True, "", "queue", [], {}, [1, None, "a"], {"a": {"b": [2]}}, 2**63 - 1, *self.ground.own_ids[:2])
        return {name: self.random.choice((*values, *self.ground.other_ids[:2], OTHER)) for name in "pq"}

    def once(self) -> None:
        """One text more."""
        kind, query = self.text()
        params = self.params()
        self.tally.kinds[kind] += 1
        before, began = self.ground.changes(), time.monotonic()
        try:
            outcome, told = self._outcome(query, params)
        except Exception as crash:  # noqa: BLE001 - what no caller is told of is a finding, and the run goes on
            self.tally.find("crash", query, f"{type(crash).__name__}: {crash}")
            outcome, told = "", ""
        taken = time.monotonic() - began
        if taken > self.tally.slowest_seconds:
            self.tally.slowest_seconds, self.tally.slowest = taken, ascii(query)
        if outcome:
            self.tally.outcomes[outcome] += 1
            if outcome == "answered" and len(query) < 600 and self.random.random() < 0.05:
                self._keep(query)
        if taken > HANGS_AFTER:
            self.tally.find("hang", query, f"{taken:.1f} seconds")
        if self.ground.changes() != before:
            self.tally.find("write", query, "rows of the store were changed")
        leaked = leaks(told, query, params, self.ground.canaries)
        if leaked:
            self.tally.find("leak", query, f"{leaked} in {told[:500]}")

    def _outcome(self, query: str, params: Mapping[str, Any]) -> tuple[str, str]:
        """What came of it, and all that a caller is told."""
        try:
            compiled = compile_query(query, params)
            result = run(compiled, self.ground.source, now=START, budget=Budget(time.monotonic, LIMITS), max_rows=MOST_ROWS)
        except ALLOWED as refused:
            return refused.code, json.dumps([str(refused), refused.details], allow_nan=False)
        rows = [[encode(value) for value in row] for row in result.rows]
        return "answered", json.dumps([result.columns, rows, result.notices], allow_nan=False)

    def _keep(self, query: str) -> None:
        if len(self.pool) < _POOL:
            self.pool.append(query)
        else:
            self.pool[self.random.randrange(len(SEEDS), _POOL)] = query


def leaks(told: str, query: str, params: Mapping[str, Any], canaries: Sequence[str]) -> list[str]:
    """What of another board is told that the caller had not said."""
    said = ascii(query) + json.dumps(params)
    return [canary for canary in canaries if canary in told and canary not in said]


def report_of(tally: Tally, seed: int, seconds: float) -> dict[str, Any]:
    """Ready for JSON."""
    return {
        "format": 1,
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seed": seed,
        "seconds": round(seconds, 1),
        "texts": tally.kinds.total(),
        "made_by": dict(sorted(tally.kinds.items())),
        "outcomes": dict(sorted(tally.outcomes.items())),
        "slowest_seconds": round(tally.slowest_seconds, 2),
        "slowest": tally.slowest,
        "findings": tally.findings,
    }


def main() -> int:
    """The program; its exit status is 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.cypher_fuzz", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600, help="how long it runs (600)")
    parser.add_argument("--seed", type=int, default=1, help="which texts are made (1)")
    parser.add_argument("--report", type=Path, help="where the report is written; on stdout otherwise")
    chosen = parser.parse_args()
    began = told = time.monotonic()
    with ground() as made:
        fuzzer = Fuzzer(made, chosen.seed)
        while (now := time.monotonic()) < began + chosen.seconds:
            if now > told + 5:
                told = now
                sys.stderr.write(f"{now - began:.0f} s, {fuzzer.tally.kinds.total():,} texts, {len(fuzzer.tally.findings)} findings\n")
            fuzzer.once()
    text = json.dumps(report_of(fuzzer.tally, chosen.seed, time.monotonic() - began), indent=2) + "\n"
    if chosen.report is None:
        sys.stdout.write(text)
    else:
        chosen.report.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{fuzzer.tally.kinds.total():,} texts, {len(fuzzer.tally.findings)} findings: {chosen.report}\n")
    return 1 if fuzzer.tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
