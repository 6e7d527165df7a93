"""Agents, keys, grants and boards: what administrators do, and what a key opens afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from pulse_kg.domain.keys import parse_key
from pulse_kg.domain.permissions import Caller, effective
from pulse_kg.domain.schema import ADDABLE_KINDS, ATTRIBUTES, RESERVED_KEYS
from pulse_kg.errors import InvalidArgument, Unauthorized
from pulse_kg.ports.identity import Agent, IdentityStore
from pulse_kg.usecases import boards as board_usecases
from pulse_kg.usecases import identity as usecases
from pulse_kg.usecases.identity import IssuedKey, authenticate, effective_flags
from tests.support.world import World, opened


@pytest.fixture
def world() -> Iterator[World]:
    with opened() as made:
        made.board("web")
        made.board("api")
        yield made


@dataclass
class Office:
    """An administrator over a world."""

    world: World

    @property
    def identity(self) -> IdentityStore:
        return self.world.container.identity

    def create(self, name: str = "ann", preset: str = "Spec", boards: Sequence[str] = ("web",), flags: Sequence[str] = ()) -> IssuedKey:
        container = self.world.container
        return usecases.create_agent(
            name, preset, boards, flags, identity=self.identity, boards=container.boards, ids=self.world.ids, now=self.world.clock.now()
        )

    def grant(self, board: str, name: str = "ann") -> Agent:
        return usecases.grant_board(name, board, identity=self.identity, boards=self.world.container.boards)

    def deny(self, board: str, name: str = "ann") -> Agent:
        return usecases.deny_board(name, board, identity=self.identity, boards=self.world.container.boards)

    def flags(self, *changes: str, name: str = "ann") -> Agent:
        added, removed = ([c[1:] for c in changes if c[0] == sign] for sign in "+-")
        return usecases.change_flags(name, added, removed, identity=self.identity)

    def rotate(self, name: str = "ann") -> IssuedKey:
        return usecases.rotate_key(name, identity=self.identity, ids=self.world.ids, now=self.world.clock.now())

    def caller(self, key: str | None) -> Caller:
        return authenticate(key, self.identity)


@pytest.fixture
def office(world: World) -> Office:
    return Office(world)


def problems(error: pytest.ExceptionInfo[InvalidArgument]) -> list[str]:
    return [p.path for p in error.value.problems]


def test_a_new_agent_s_key_opens_it_with_its_preset_and_boards(office: Office) -> None:
    issued = office.create("ann", "spec", ["web"], ["kg.power.cypher"])
    caller = office.caller(issued.api_key)
    assert (caller.agent_id, caller.name) == (issued.agent.agent_id, "ann")
    assert caller.boards == {"web"}
    assert caller.flags == effective("Spec", ["kg.power.cypher"])
    assert issued.agent.preset == "Spec"


def test_neither_key_nor_secret_is_kept(office: Office) -> None:
    issued = office.create()
    key = parse_key(issued.api_key)
    assert key is not None
    kept = repr(office.identity.keys(issued.agent.agent_id)) + repr(office.identity.by_key(key.public_id))
    assert key.secret not in kept
    assert key.secret_sha256 in kept
    assert issued.api_key not in repr(issued)


def test_no_bad_unknown_and_revoked_keys_and_those_of_revoked_agents_look_the_same(office: Office) -> None:
    rotated = office.create("ann").api_key
    office.rotate("ann")
    revoked = office.create("bob").api_key
    usecases.revoke_agent("bob", identity=office.identity, now=office.world.clock.now())
    ended = office.create("eve").api_key
    usecases.revoke_keys("eve", identity=office.identity, now=office.world.clock.now())
    wrong_secret = rotated[:12] + "b" * 52
    refusals = set()
    for key in (None, "", "x", "pk_aaaaaaaa_" + "a" * 52, wrong_secret, rotated, revoked, ended):
        with pytest.raises(Unauthorized) as caught:
            office.caller(key)
        refusals.add((caught.value.message, repr(caught.value.details)))
    assert len(refusals) == 1


def test_an_unknown_key_costs_the_comparison_that_a_wrong_one_costs(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((len(left), len(right)))
        return False

    monkeypatch.setattr("pulse_kg.domain.keys.hmac.compare_digest", compare)
    for key in (office.create().api_key, "pk_zzzzzzzz_" + "a" * 52):
        with pytest.raises(Unauthorized):
            office.caller(key)
    assert compared == [(64, 64), (64, 64)]


def test_every_problem_of_a_new_agent_is_told_at_once(office: Office) -> None:
    with pytest.raises(InvalidArgument) as caught:
        office.create("-ann", "Spex", ["wbe", "api", "zzz"], ["kg.sesion.begin", "kg.*"])
    assert problems(caught) == ["name", "flag", "preset", "board", "board"]
    assert all(p.problem in caught.value.message for p in caught.value.problems)
    assert "'web'" in caught.value.message
    assert office.identity.agents() == ()


@pytest.mark.parametrize("name", ["", " ann", "ann ", "+ann", "-ann", "a\nb", "a\x00b", "a\u202eb", "x" * 101])
def test_names_that_would_mislead_are_refused(office: Office, name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        office.create(name)
    assert problems(caught) == ["name"]


@pytest.mark.parametrize("name", ["ann", "Ann Example", "build-bot@ci", "Åse", "名前", "x" * 100])
def test_names_of_people_and_programs_are_taken(office: Office, name: str) -> None:
    assert office.create(name).agent.name == name


def test_a_name_is_taken_for_good(office: Office) -> None:
    office.create("ann")
    usecases.revoke_agent("ann", identity=office.identity, now=office.world.clock.now())
    with pytest.raises(InvalidArgument, match="taken"):
        office.create("ann")


def test_an_agent_without_boards_sees_none(office: Office) -> None:
    assert office.caller(office.create(boards=()).api_key).boards == frozenset()


def test_a_grant_adds_a_board_and_lifts_its_denial(office: Office) -> None:
    key = office.create().api_key
    office.deny("web")
    assert office.caller(key).boards == set()
    office.grant("web")
    office.grant("api")
    assert office.caller(key).boards == {"web", "api"}


def test_a_denial_wins_over_the_grant_and_lasts(office: Office) -> None:
    key = office.create(boards=("web", "api")).api_key
    after = office.deny("api")
    assert office.caller(key).boards == {"web"}
    assert (after.boards, after.denied) == (("api", "web"), ("api",))


def test_grants_and_denials_can_be_said_twice(office: Office) -> None:
    office.create()
    assert office.grant("api") == office.grant("api")
    assert office.deny("api") == office.deny("api")


@pytest.mark.parametrize("change", ["grant", "deny"])
def test_a_misspelt_board_is_neither_granted_nor_denied(office: Office, change: str) -> None:
    office.create()
    with pytest.raises(InvalidArgument, match="nearest: 'web'"):
        getattr(office, change)("wbe")


def test_a_removed_flag_wins_until_it_is_added_again(office: Office) -> None:
    key = office.create().api_key
    office.flags("-kg.session.commit")
    assert not office.caller(key).may("kg.session.commit")
    office.flags("+kg.session.commit")
    assert office.caller(key).may("kg.session.commit")


def test_a_removed_group_wins_over_an_added_flag_of_it(office: Office) -> None:
    key = office.create().api_key
    office.flags("-kg.session.*")
    after = office.flags("+kg.session.begin")
    assert not office.caller(key).may("kg.session.begin")
    assert (after.added_flags, after.removed_flags) == (("kg.session.begin",), ("kg.session.*",))
    office.flags("+kg.session.*")
    assert office.caller(key).may("kg.session.begin")


def test_flags_that_can_t_be_change_nothing(office: Office) -> None:
    before = office.create().agent
    with pytest.raises(InvalidArgument) as caught:
        office.flags("+kg.query.globl", "-kg.nothing", "+kg.admin.tick", "-kg.admin.tick")
    assert problems(caught) == ["flags"] * 3
    assert usecases.find_agent("ann", office.identity) == before


def test_effective_flags_of_an_agent_are_those_of_its_caller(office: Office) -> None:
    key = office.create().api_key
    agent = office.flags("+kg.power.cypher", "-kg.query.*")
    assert office.caller(key).flags == effective_flags(agent) == effective("Spec", ["kg.power.cypher"], ["kg.query.*"])


def test_a_rotated_key_ends_the_older_ones_at_once(office: Office) -> None:
    first = office.create().api_key
    second = office.rotate()
    assert office.caller(second.api_key).name == "ann"
    assert second.keys_revoked == 1
    with pytest.raises(Unauthorized):
        office.caller(first)


def test_an_agent_without_keys_can_get_a_new_one(office: Office) -> None:
    office.create()
    agent, ended = usecases.revoke_keys("ann", identity=office.identity, now=office.world.clock.now())
    assert (agent.name, ended) == ("ann", 1)
    assert office.caller(office.rotate().api_key).name == "ann"


def test_revoking_an_agent_is_final_and_keeps_its_first_time(office: Office) -> None:
    office.create()
    first, ended = usecases.revoke_agent("ann", identity=office.identity, now=office.world.clock.now())
    office.world.clock.advance(days=1)
    again, nothing = usecases.revoke_agent("ann", identity=office.identity, now=office.world.clock.now())
    assert (ended, nothing) == (1, 0)
    assert again.revoked_at == first.revoked_at is not None
    for change in (office.rotate, lambda: office.grant("api"), lambda: office.deny("api"), lambda: office.flags("+kg.power.cypher")):
        with pytest.raises(InvalidArgument, match="revoked"):
            change()


def test_a_misspelt_agent_is_told_with_the_nearest(office: Office) -> None:
    office.create("annabel")
    with pytest.raises(InvalidArgument, match="nearest: 'annabel'"):
        usecases.find_agent("anabel", office.identity)


# ------------------------------------------------------------------------------------------------------------- boards


def test_a_board_has_its_id_for_a_name_unless_one_is_given(world: World) -> None:
    boards, now = world.container.boards, world.clock.now()
    assert board_usecases.create_board("x", None, boards=boards, now=now).name == "x"
    assert board_usecases.create_board("y", "The Y team", boards=boards, now=now).name == "The Y team"


@pytest.mark.parametrize("board_id", ["", "Web", "_web", "we b", "we-b", "x" * 65, "web\n", "wéb", "../web"])
def test_ids_that_are_none_make_no_board(world: World, board_id: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        board_usecases.create_board(board_id, "", boards=world.container.boards, now=0)
    assert problems(caught) == ["board", "name"]


def test_a_board_s_id_is_taken_once_and_for_good(world: World) -> None:
    boards = world.container.boards
    with pytest.raises(InvalidArgument, match="taken"):
        board_usecases.create_board("web", None, boards=boards, now=1)
    left = board_usecases.erase_board("web", boards=boards, now=2)
    assert not any(left.values())
    with pytest.raises(InvalidArgument, match="erased before"):
        board_usecases.create_board("web", None, boards=boards, now=3)


def test_an_erased_board_is_gone_from_its_grants(office: Office) -> None:
    key = office.create(boards=("web", "api")).api_key
    board_usecases.erase_board("web", boards=office.world.container.boards, now=2)
    assert office.caller(key).boards == {"api"}


def test_a_board_is_shown_with_counts_and_all_settings(world: World) -> None:
    container = world.container
    world.agent(boards=("web",)).begin(board_id="web")
    shown = board_usecases.show_board(
        "web", boards=container.boards, graph=container.graph, sessions=container.sessions, now=world.clock.now()
    )
    assert shown.board.board_id == "web"
    assert shown.settings == {"strict_attributes": False}
    assert shown.counts == {"nodes": 0, "live_nodes": 0, "edges": 0, "open_sessions": 1}


@pytest.mark.parametrize(("text", "value"), [("true", True), ("FALSE", False)])
def test_strict_attributes_can_be_set(world: World, text: str, value: bool) -> None:
    boards = world.container.boards
    assert board_usecases.set_board("web", {"strict_attributes": text}, boards=boards) == {"strict_attributes": value}
    found = boards.board("web")
    assert found is not None
    assert found.settings["strict_attributes"] is value


def test_unknown_settings_and_values_change_nothing_and_name_the_known(world: World) -> None:
    boards = world.container.boards
    with pytest.raises(InvalidArgument, match="strict_attributes") as caught:
        board_usecases.set_board("web", {"strict_attributes": "yes", "colour": "red"}, boards=boards)
    assert problems(caught) == ["strict_attributes", "colour"]
    found = boards.board("web")
    assert found is not None
    assert not found.settings.get("strict_attributes")


@pytest.mark.parametrize("kind", ADDABLE_KINDS)
def test_every_addable_kind_can_be_added(world: World, kind: str) -> None:
    after = board_usecases.add_attribute("web", "Decision", "owner", kind, boards=world.container.boards)
    assert after.added_attributes["Decision"] == {"owner": kind}


@pytest.mark.parametrize(
    ("node_type", "key", "kind", "wrong"),
    [
        ("Decison", "owner", "text", ["type"]),
        ("Decision", "Owner", "text", ["key"]),
        ("Decision", "2nd", "text", ["key"]),
        ("Decision", "x" * 65, "text", ["key"]),
        ("Decision", "rationale", "text", ["key"]),
        ("Decision", "owner", "choice", ["kind"]),
        ("decision", "Ⅷ", "blob", ["type", "key", "kind"]),
        *(("Decision", key, "text", ["key"]) for key in sorted(RESERVED_KEYS)),
        *((node_type, key, "text", ["key"]) for node_type, specs in ATTRIBUTES.items() for key in specs),
    ],
)
def test_attributes_that_can_t_be_added(world: World, node_type: str, key: str, kind: str, wrong: list[str]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        board_usecases.add_attribute("web", node_type, key, kind, boards=world.container.boards)
    assert problems(caught) == wrong


def test_an_attribute_is_added_once(world: World) -> None:
    boards = world.container.boards
    board_usecases.add_attribute("web", "Bug", "estimate", "number", boards=boards)
    with pytest.raises(InvalidArgument, match="already"):
        board_usecases.add_attribute("web", "Bug", "estimate", "text", boards=boards)
    board_usecases.add_attribute("web", "Learning", "estimate", "text", boards=boards)
    board_usecases.add_attribute("api", "Bug", "estimate", "text", boards=boards)


def test_a_misspelt_board_is_told_with_the_nearest(world: World) -> None:
    with pytest.raises(InvalidArgument, match="nearest: 'web'"):
        board_usecases.require_board("wbe", world.container.boards)
