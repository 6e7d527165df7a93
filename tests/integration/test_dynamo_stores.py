"""The DynamoDB stores on a server that has real transactions, and callers at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import pytest

from pulse_kg.adapters.dynamodb import keys
from pulse_kg.adapters.dynamodb.boards import DynamoBoardStore
from pulse_kg.adapters.dynamodb.identity import DynamoIdentityStore
from pulse_kg.adapters.dynamodb.rates import DynamoRateLimiter
from pulse_kg.adapters.dynamodb.sessions import DynamoSessionStore
from pulse_kg.adapters.dynamodb.tables import BOARDS, IDENTITY, PK, SESSIONS, SK, TABLES
from pulse_kg.domain.model import Proposal, TextVector
from pulse_kg.errors import PermissionDenied, SessionAborted, SessionNotFound, StoreUnavailable
from pulse_kg.ports.identity import Agent, KeyRecord
from tests.support.dynamo_tables import Tables, own_tables
from tests.support.plans import NOW, edge, node, session, unit

pytestmark = pytest.mark.served

CALLERS = 16
Result = TypeVar("Result")


@pytest.fixture(scope="module")
def made() -> Iterator[Tables]:
    with own_tables() as tables:
        yield tables


@pytest.fixture
def tables(made: Tables) -> Iterator[Tables]:
    boards = DynamoBoardStore(made.dynamo())
    boards.create("alpha", "Alpha", now=NOW)
    boards.create("beta", "Beta", now=NOW)
    yield made
    made.empty()


def at_once(*calls: Callable[[], Result]) -> list[Result]:
    barrier = Barrier(len(calls))

    def run(call: Callable[[], Result]) -> Result:
        barrier.wait(30)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def append(store: DynamoSessionStore, number: int = 1, title: str = "A", key: str | None = None) -> str:
    draft = node(title)
    return store.append_node(session(number).session_id, draft, unknown_keys=(), idempotency_key=key, limit=500, now=NOW).candidate_id


def fill(tables: Tables, board_id: str, number: int) -> None:
    dynamo = tables.dynamo()
    sessions = DynamoSessionStore(dynamo)
    for more in range(3):
        of = session(number + more, board_id, agent_id=f"agt_{board_id}")
        sessions.create(of, limit=50, counted_boards={board_id})
        for n in range(30):
            append(sessions, number + more, f"{board_id} {n}", key=f"{board_id} {n}")
        supersedes = edge("cand_001", "supersedes", f"{board_id}_1")
        sessions.append_edge(of.session_id, supersedes, unknown_keys=(), target_was_live=True, idempotency_key=None, limit=9, now=NOW)
        sessions.save_vectors(of.session_id, {"cand_001": TextVector(unit(1))}, now=NOW)
        sessions.save_proposals(of.session_id, [Proposal("cand_001", "ADD", 6, board_id)], edges_seen=1, targets_live={}, now=NOW)
    sessions.abort(session(number).session_id, now=NOW)
    agent = Agent(f"agt_{board_id}", board_id, "QA", (), (), ("alpha", "beta"), ("alpha", "beta"), NOW)
    DynamoIdentityStore(dynamo).create_agent(agent, KeyRecord(f"aaaaaa{number:02d}", agent.agent_id, "f" * 64, NOW))


def test_callers_who_add_to_one_session_at_once_get_numbers_without_gaps(tables: Tables) -> None:
    stores = [DynamoSessionStore(tables.dynamo()) for _ in range(CALLERS)]
    stores[0].create(session(1))

    def three(store: DynamoSessionStore) -> Sequence[str]:
        return [append(store) for _ in range(3)]

    made = at_once(*((lambda store=store: three(store)) for store in stores))
    assert sorted(c for some in made for c in some) == [f"cand_{n:03d}" for n in range(1, 3 * CALLERS + 1)]
    loaded, candidates = stores[0].load_all(session(1).session_id)
    assert loaded.nodes == len(candidates.nodes) == 3 * CALLERS


def test_who_reads_while_others_add_sees_a_state_without_gaps(tables: Tables) -> None:
    reader, writers = DynamoSessionStore(tables.dynamo()), [DynamoSessionStore(tables.dynamo()) for _ in range(4)]
    reader.create(session(1))

    def read() -> int:
        seen = 0
        while seen < 80:
            loaded, found = reader.load_all(session(1).session_id)
            assert [c.candidate_id for c in found.nodes] == [f"cand_{n:03d}" for n in range(1, loaded.nodes + 1)]
            assert loaded.nodes >= seen
            seen = loaded.nodes
        return seen

    def write(store: DynamoSessionStore) -> int:
        for _ in range(20):
            append(store)
        return 0

    assert sum(at_once(read, *((lambda store=store: write(store)) for store in writers))) == 80


def test_callers_who_send_one_key_at_once_make_one_candidate(tables: Tables) -> None:
    stores = [DynamoSessionStore(tables.dynamo()) for _ in range(CALLERS)]
    stores[0].create(session(1))
    assert set(at_once(*((lambda store=store: append(store, key="k")) for store in stores))) == {"cand_001"}
    assert stores[0].load(session(1).session_id).nodes == 1


def test_callers_who_begin_at_once_do_not_get_beyond_the_limit(tables: Tables) -> None:
    stores = [DynamoSessionStore(tables.dynamo()) for _ in range(CALLERS)]
    for number in (100, 101):
        stores[0].create(session(number))
    stores[0].abort(session(100).session_id, now=NOW)

    def begin(number: int) -> bool:
        return stores[number].create(session(number), limit=5, counted_boards={"alpha"})

    made = at_once(*((lambda number=number: begin(number)) for number in range(CALLERS)))
    assert sum(made) == 4
    assert len(stores[0].open_sessions(agent_id="agt_ada", now=NOW)) == 5


def test_of_an_abort_and_those_who_add_at_once_nobody_leaves_a_candidate(tables: Tables) -> None:
    stores = [DynamoSessionStore(tables.dynamo()) for _ in range(8)]
    stores[0].create(session(1))

    def add(store: DynamoSessionStore) -> bool:
        try:
            for _ in range(10):
                append(store)
        except SessionAborted:
            return True
        return False

    def abort() -> bool:
        stores[0].abort(session(1).session_id, now=NOW)
        return True

    at_once(abort, *((lambda store=store: add(store)) for store in stores))
    assert [item[SK]["S"] for item in tables.items(SESSIONS) if item[PK]["S"] == keys.session(session(1).session_id)] == [keys.HEAD]


def test_an_erasure_removes_one_board_and_nothing_of_another(tables: Tables) -> None:
    fill(tables, "alpha", 1)
    fill(tables, "beta", 11)
    trace = re.compile("alpha|" + "|".join(session(number).session_id for number in (1, 2, 3)))
    before = {table: [item for item in tables.items(table) if not trace.search(str(item))] for table in (SESSIONS, BOARDS)}
    assert len(before[SESSIONS]) > 100
    assert set(DynamoBoardStore(tables.dynamo()).erase("alpha", now=NOW).values()) == {0}
    after = {table: tables.items(table) for table in TABLES}
    for table, items in before.items():
        assert [item for item in items if item not in after[table]] == []
        assert {item[PK]["S"] for item in after[table] if trace.search(str(item))} <= {keys.erased("alpha")}
    agents = DynamoIdentityStore(tables.dynamo()).agents()
    assert [(a.boards, a.denied) for a in agents] == [(("beta",), ("beta",))] * 2
    assert len(DynamoSessionStore(tables.dynamo()).open_sessions(board_id="beta", now=NOW)) == 2


def test_two_who_erase_at_once_both_finish(tables: Tables) -> None:
    fill(tables, "alpha", 1)
    left = at_once(*(lambda: DynamoBoardStore(tables.dynamo()).erase("alpha", now=NOW) for _ in range(2)))
    assert [set(some.values()) for some in left] == [{0}, {0}]
    named = [item for table in TABLES if table != IDENTITY for item in tables.items(table) if "alpha" in str(item)]
    assert [item[PK]["S"] for item in named] == [keys.erased("alpha")]


def test_those_who_work_on_a_board_while_it_is_erased_leave_nothing(tables: Tables) -> None:
    stores = [DynamoSessionStore(tables.dynamo()) for _ in range(6)]

    def work(number: int) -> int:
        done = 0
        try:
            for more in range(20):
                stores[number].create(session(100 * number + more, agent_id=f"agt_{number}"), limit=50, counted_boards={"alpha"})
                append(stores[number], 100 * number + more)
                done += 1
        except (PermissionDenied, SessionNotFound, StoreUnavailable):
            return done
        return done

    def erase() -> int:
        return sum(DynamoBoardStore(tables.dynamo()).erase("alpha", now=NOW).values())

    assert at_once(erase, *((lambda number=number: work(number)) for number in range(1, 6)))[0] == 0
    assert tables.items(SESSIONS) == []


def test_processes_share_one_counter_of_calls(tables: Tables) -> None:
    limiters = [DynamoRateLimiter(tables.dynamo()) for _ in range(CALLERS)]
    given = at_once(*((lambda r=r: r.take("ada", limit=10, window_seconds=60, now=NOW)) for r in limiters))
    assert given.count(None) == 10
    assert {wait for wait in given if wait is not None} == {60}


def test_grants_that_change_while_a_board_is_erased_are_neither_lost_nor_kept(tables: Tables) -> None:
    identity = DynamoIdentityStore(tables.dynamo())
    agent = Agent("agt_ada", "ada", "QA", (), (), ("alpha", "beta"), (), NOW)
    identity.create_agent(agent, KeyRecord("aaaaaaaa", "agt_ada", "f" * 64, NOW))
    at_once(
        lambda: DynamoBoardStore(tables.dynamo()).erase("alpha", now=NOW) and None,
        lambda: identity.save_agent(Agent("agt_ada", "ada", "QA", (), (), ("beta", "gamma"), ("alpha",), NOW)),
    )
    DynamoBoardStore(tables.dynamo()).erase("alpha", now=NOW)  # a grant that came after the first look is seen by the second
    found = identity.by_name("ada")
    assert found is not None
    assert set(found.boards) >= {"beta"}
    assert "alpha" not in (*found.boards, *found.denied)
