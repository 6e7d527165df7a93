"""What `IdentityStore` promises, of every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pulse_kg.ports.identity import Agent, KeyRecord
from tests.support.plans import NOW
from tests.support.stores import Stores


def agent(name: str = "ada", **changes: object) -> Agent:
    made = Agent(f"agt_{name}", name, "Full Control", ("kg.admin.*",), ("kg.power.cypher",), ("alpha", "beta"), ("beta", "gamma"), NOW)
    return replace(made, **changes)  # type: ignore[arg-type]


def key(public_id: str = "aaaaaaaa", agent_id: str = "agt_ada", **changes: object) -> KeyRecord:
    return replace(KeyRecord(public_id, agent_id, "f" * 64, NOW), **changes)  # type: ignore[arg-type]


def test_an_agent_is_found_by_its_key_and_its_name_as_it_was_made(store: Stores) -> None:
    assert store.identity.create_agent(agent(), key())
    assert store.identity.by_key("aaaaaaaa") == (agent(), key())
    assert store.identity.by_name("ada") == agent()
    assert store.identity.by_key("bbbbbbbb") is None
    assert store.identity.by_name("bob") is None


def test_a_taken_name_makes_neither_agent_nor_key(store: Stores) -> None:
    store.identity.create_agent(agent(), key())
    assert not store.identity.create_agent(agent(agent_id="agt_other"), key("bbbbbbbb", "agt_other"))
    assert store.identity.by_key("bbbbbbbb") is None
    assert store.identity.agents() == (agent(),)


def test_a_revoked_agent_is_still_found_and_keeps_its_name(store: Stores) -> None:
    store.identity.create_agent(agent(), key())
    revoked = agent(revoked_at=NOW + 5)
    store.identity.save_agent(revoked)
    assert store.identity.by_key("aaaaaaaa") == (revoked, key())
    assert store.identity.by_name("ada") == revoked
    assert not store.identity.create_agent(agent(agent_id="agt_2"), key("bbbbbbbb", "agt_2"))


def test_saving_replaces_flags_grants_and_denials(store: Stores) -> None:
    store.identity.create_agent(agent(), key())
    store.identity.create_agent(agent("bob"), key("bbbbbbbb", "agt_bob"))
    changed = agent(added_flags=(), removed_flags=("a", "b"), boards=("gamma",), denied=())
    store.identity.save_agent(changed)
    assert store.identity.by_name("ada") == changed
    assert store.identity.by_name("bob") == agent("bob")


def test_names_in_any_order_come_back_sorted(store: Stores) -> None:
    given = agent(added_flags=("b", "a"), removed_flags=("d", "c"), boards=("z", "y"), denied=("x", "w"))
    store.identity.create_agent(given, key())
    found = store.identity.by_name("ada")
    assert found is not None
    assert (found.added_flags, found.removed_flags, found.boards, found.denied) == (("a", "b"), ("c", "d"), ("y", "z"), ("w", "x"))


def test_agents_come_by_name(store: Stores) -> None:
    for number, name in enumerate(["zoe", "ada", "bob"]):
        store.identity.create_agent(agent(name), key(f"aaaaaaa{number}", f"agt_{name}"))
    assert [a.name for a in store.identity.agents()] == ["ada", "bob", "zoe"]


def test_keys_come_by_age_and_are_revoked_but_one(store: Stores) -> None:
    store.identity.create_agent(agent(), key("cccccccc", created_at=NOW + 1))
    store.identity.create_agent(agent("bob"), key("dddddddd", "agt_bob"))
    store.identity.add_key(key("bbbbbbbb", created_at=NOW + 1))
    store.identity.add_key(key("zzzzzzzz", created_at=NOW))
    assert [k.public_id for k in store.identity.keys("agt_ada")] == ["zzzzzzzz", "bbbbbbbb", "cccccccc"]
    assert store.identity.revoke_keys("agt_ada", now=NOW + 9, but="bbbbbbbb") == 2
    assert store.identity.revoke_keys("agt_ada", now=NOW + 10, but="bbbbbbbb") == 0
    assert [k.revoked_at for k in store.identity.keys("agt_ada")] == [NOW + 9, None, NOW + 9]
    found = store.identity.by_key("cccccccc")
    assert found is not None
    assert found[1].revoked_at == NOW + 9
    assert store.identity.revoke_keys("agt_ada", now=NOW + 11) == 1
    assert [k.revoked_at for k in store.identity.keys("agt_bob")] == [None]
    assert store.identity.keys("agt_none") == ()


def test_of_threads_that_make_one_name_at_once_one_wins(store: Stores) -> None:
    def make(number: int) -> bool:
        return store.identity.create_agent(agent(agent_id=f"agt_{number}"), key(f"aaaaaaa{number}", f"agt_{number}"))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(make, range(8))) == 1
    assert len(store.identity.agents()) == 1
