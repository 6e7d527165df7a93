"""Permissions: the presets of the contract, and what adding and removing flags makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_kg.domain.permissions import FLAGS, PRESETS, Caller, allows, effective, expand, find_preset, flag_fault, preset_fault

QUERY = {f for f in FLAGS if f.startswith("kg.query.")}
SESSION = {f for f in FLAGS if f.startswith("kg.session.")}
ADMIN = {f for f in FLAGS if f.startswith("kg.admin.")}
READING = QUERY | {"kg.power.natural", "kg.power.schema_info"}

# The table of the contract, row by row.
TABLE = {
    "Full Control": READING | {"kg.power.cypher"} | SESSION | ADMIN,
    "Spec": READING | SESSION | {"kg.admin.health", "kg.admin.dead_letters", "kg.admin.reprocess"},
    "Validator": READING | SESSION | {"kg.admin.health"},
    "QA": READING | (SESSION - {"kg.session.commit"}) | {"kg.admin.health"},
    "Executor": READING | {"kg.admin.health"},
    "Reporter": READING | {"kg.admin.health"},
    "Sprint Manager": READING | {"kg.admin.health"},
}

patterns = st.sampled_from([*FLAGS, "kg.*", "kg.session.*", "kg.query.*", "kg.power.*", "kg.admin.*"])
sets = st.lists(patterns, max_size=5)
presets = st.sampled_from(list(PRESETS))


def test_there_are_24_permissions_of_four_kinds() -> None:
    assert (len(SESSION), len(QUERY), len(ADMIN), len(FLAGS)) == (7, 9, 5, 24)
    assert len(set(FLAGS)) == len(FLAGS)


def test_the_presets_are_the_seven_of_the_contract() -> None:
    assert list(PRESETS) == list(TABLE)


@pytest.mark.parametrize("preset", list(TABLE))
def test_a_preset_gives_exactly_what_its_row_says(preset: str) -> None:
    assert effective(preset) == TABLE[preset]


@given(preset=presets, added=sets, removed=sets)
def test_a_removed_flag_is_never_in_force(preset: str, added: list[str], removed: list[str]) -> None:
    assert not effective(preset, added, removed) & expand(removed)


@given(preset=presets, added=sets, removed=sets)
def test_what_is_in_force_comes_from_the_preset_or_was_added(preset: str, added: list[str], removed: list[str]) -> None:
    flags = effective(preset, added, removed)
    assert flags <= expand(PRESETS[preset]) | expand(added)
    assert flags >= expand(added) - expand(removed)


@given(added=sets, removed=sets)
def test_an_unknown_preset_gives_only_what_was_added(added: list[str], removed: list[str]) -> None:
    assert effective("Superuser", added, removed) == expand(added) - expand(removed)


@given(flags=sets, flag=st.sampled_from(FLAGS))
def test_wildcards_allow_what_they_expand_to(flags: list[str], flag: str) -> None:
    assert allows(flags, flag) == (flag in expand(flags))


@given(flags=sets, name=st.text(max_size=20))
def test_what_is_no_permission_is_never_allowed(flags: list[str], name: str) -> None:
    assert not allows([*flags, name], f"kg.session.{name}.x")


def test_nothing_is_allowed_by_default() -> None:
    assert not any(allows((), flag) for flag in FLAGS)


@pytest.mark.parametrize("pattern", ["kg.sess*", "*", "kg", "kg.session.", "kg.session.com.*", "KG.SESSION.*", ".*"])
def test_only_whole_groups_are_wildcards(pattern: str) -> None:
    assert expand([pattern]) == frozenset()
    assert flag_fault(pattern) is not None


def test_the_wildcard_of_everything_is_everything() -> None:
    assert expand(["kg.*"]) == frozenset(FLAGS)


@pytest.mark.parametrize("text", ["Full Control", "full control", "full-control", "FULL_CONTROL", " full  control "])
def test_a_preset_is_found_however_it_is_written(text: str) -> None:
    assert find_preset(text) == "Full Control"


def test_a_misspelt_preset_is_told_with_the_nearest() -> None:
    assert preset_fault("Specs") == "is no preset (nearest: 'Spec')"


def test_a_preset_like_no_other_is_told_with_all() -> None:
    assert all(name in str(preset_fault("zzz")) for name in PRESETS)


def test_a_misspelt_flag_is_told_with_the_nearest() -> None:
    assert flag_fault("kg.session.comit") == "is no permission (nearest: 'kg.session.commit')"
    assert flag_fault("kg.session.commit") is None


def test_a_caller_may_what_its_flags_say_and_sees_its_boards() -> None:
    caller = Caller("agt_1", "ann", frozenset({"kg.query.global"}), frozenset({"web"}))
    assert caller.may("kg.query.global")
    assert not caller.may("kg.session.begin")
    assert caller.sees("web")
    assert not caller.sees("api")
