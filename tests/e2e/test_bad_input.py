"""Whatever is sent to a tool: the right refusal, every fault of it named, and nothing stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from pulse_kg.mcp.host import TOOL_PREFIX
from pulse_kg.mcp.http import HttpRequest, HttpResponse
from pulse_kg.mcp.routes import HttpEdge
from pulse_kg.mcp.tools import all_tools
from tests.support.bad_input import (
    HOSTILE_TEXT,
    OF_NO_USE,
    TWENTY_MB,
    UNKNOWN_KEYS,
    Argument,
    arguments_of,
    dump,
    fault_of_envelope,
    nested,
    removed,
    replaced,
)
from tests.support.world import Agent, World, opened

CANARY = "CANARY-OF-BETA"
SCHEMAS = {tool.name: tool.spec.input_schema for tool in all_tools()}
TOOLS = tuple(SCHEMAS)
ARGUMENTS = [(tool, argument) for tool in TOOLS for argument in arguments_of(SCHEMAS[tool])]
OBJECTS = [(tool, "") for tool in TOOLS] + [(tool, a.path) for tool, a in ARGUMENTS if a.schema.get("additionalProperties") is False]
SESSION_TOOLS = tuple(tool for tool in TOOLS if "session_id" in SCHEMAS[tool]["properties"])

Case = tuple[str, object]


def _name(value: object) -> str | None:
    return value.path if isinstance(value, Argument) else None


@dataclass
class Stage:
    """A world in which everything is there that an argument can name.

    Attributes:
        world: The world.
        ada: The agent that calls; it is granted alpha alone.
        sessions: What a session is to ada → its id.
        own_node: A node of alpha.
        far_node: A node of beta.
        own_constraint: A Constraint of alpha.
        twin: A candidate id that another session of ada has, and her open one has not.
    """

    world: World
    ada: Agent
    sessions: Mapping[str, str]
    own_node: str
    far_node: str
    own_constraint: str
    twin: str = "cand_003"

    def good(self, tool: str) -> dict[str, Any]:
        """Arguments with every optional one, which the tool would take."""
        session_id = self.sessions["open"]
        source_ref = {"spec_id": "spec_007", "section": "limits"}
        good: dict[str, dict[str, Any]] = {
            "begin_consolidation": {
                "board_id": "alpha",
                "source_type": "spec",
                "source_id": "spec_009",
                "source_version": 2,
                "payload_hash": "sha256:" + "ab" * 32,
            },
            "add_node_candidate": {
                "session_id": session_id,
                "node_type": "Decision",
                "title": "Calls end after a minute",
                "body": "Longer ones are split.",
                "attributes": {"confidence": 0.5},
                "source_ref": source_ref,
                "idempotency_key": "third",
            },
            "add_edge_candidate": {
                "session_id": session_id,
                "src": {"candidate_id": "cand_001"},
                "dst": {"candidate_id": "cand_002"},
                "rel_type": "relates_to",
                "attributes": {"reason": "Both are about calls."},
                "idempotency_key": "an edge",
            },
            "get_similar_nodes": {"session_id": session_id, "candidate_id": "cand_001", "k": 5},
            "propose_reconciliation": {"session_id": session_id},
            "commit_consolidation": {
                "session_id": session_id,
                "agent_overrides": [
                    {"candidate_id": "cand_001", "hint": "SUPERSEDE", "rationale": "It is newer.", "target_node": self.own_node}
                ],
            },
            "abort_consolidation": {"session_id": session_id},
        }
        return good[tool] if tool in good else self.good_question(tool)

    def good_question(self, tool: str) -> dict[str, Any]:
        """The same for a tool that reads."""
        on, node = {"board_id": "alpha"}, {"board_id": "alpha", "node_id": self.own_node}
        span = {"since": "2025-01-01T00:00:00Z", "until": "2027-01-01T00:00:00Z"}
        good: dict[str, dict[str, Any]] = {
            "get_decision_history": {**on, "topic": "calls", "limit": 5, "since": span["since"]},
            "get_related_context": {**node, "edge_types": ["supersedes"], "direction": "both", "max_depth": 2, "limit": 5},
            "get_supersedence_chain": {**node, "max_depth": 5},
            "find_contradictions": {**node, "limit": 5, "include_resolved": True},
            "find_similar_decisions": {**on, "query": "calls", "limit": 5},
            "explain_constraint": {**on, "node_id": self.own_constraint},
            "list_alternatives": node,
            "get_learning_from_bugs": {**on, "area": "calls", "limit": 5},
            "query_global": {"query": "calls", "limit": 5},
            "query_cypher": {**on, "cypher": "MATCH (d:Decision) RETURN d.title", "params": {"n": 1}},
            "query_natural": {**on, "query": "calls", **span, "limit": 5},
            "schema_info": on,
            "verify_grounding": {**on, "answer_text": "Calls end.", "retrieved_nodes": [self.own_node]},
            "query_reflective": {**on, "query": "calls", "limit": 5},
        }
        return good[tool]

    def faults(self, tool: str, name: str, arguments: object, *, status: int, code: str, paths: tuple[str, ...] = ()) -> list[str]:
        """What is wrong with how a call is refused; nothing for a call that is refused as it should be."""
        before = dump(self.world.container)
        outcome = self.ada.try_call(tool, arguments)
        what = f"{tool} with {name}"
        if not outcome.is_error:
            return [f"{what}: it was taken, and answered {str(outcome.body)[:200]}"]
        error = outcome.body["error"]
        found = []
        if (outcome.status, error["status"], error["code"]) != (status, status, code):
            found.append(f"{what}: {outcome.status} {error['code']} instead of {status} {code}: {error['message'][:300]}")
        told = [p["path"] for p in error["details"].get("problems", [])]
        found += [f"{what}: the path '{path}' is not among {told}" for path in paths if not any(_within(t, path) for t in told)]
        fault = fault_of_envelope(outcome.body, canaries=(CANARY,))
        if fault:
            found.append(f"{what}: {fault}")
        if dump(self.world.container) != before:
            found.append(f"{what}: something was stored")
        return found


def _within(told: str, path: str) -> bool:
    return told == path or told.startswith((f"{path}.", f"{path}["))


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Refused calls change nothing, so all tests of this file may share one."""
    with opened() as world:
        world.board("alpha")
        world.board("beta")
        ada, bob, eve = world.agent("ada"), world.agent("bob"), world.agent("eve", boards=("beta",))
        both = world.agent("both", boards=("alpha", "beta"))
        expired = ada.begin("spec_001")
        expired.decide("Late")
        world.clock.advance(seconds=3_600)
        old = ada.begin("spec_002")
        old.decide("Calls end after an hour", "Nothing may run longer.")
        old.add("Constraint", "A call takes a minute at most")
        own_node, own_constraint = (a["node_id"] for a in old.commit()["applied"]["added"])
        far = eve.begin("spec_003", board_id="beta")
        far.decide(f"{CANARY} title", f"{CANARY} body", rationale=f"{CANARY} rationale")
        far_node = far.commit()["applied"]["added"][0]["node_id"]
        aborted, foreign, other = ada.begin("spec_004"), bob.begin("spec_005"), ada.begin("spec_006")
        aborted.abort()
        foreign.decide("Of Bob")
        far_open = eve.begin("spec_008", board_id="beta")
        far_open.decide(f"{CANARY} candidate")
        both_open = both.begin("spec_008", board_id="beta")
        both_open.decide(f"{CANARY} candidate")
        for title in ("One", "Two", "Three"):
            other.decide(title)
        mine = ada.begin("spec_007", 4)
        mine.decide("Calls end after a minute", "Nothing may run longer.")
        mine.decide("Calls are logged")
        mine.propose()
        sessions = {
            "open": mine.session_id,
            "of another agent": foreign.session_id,
            "of a board that is not granted": far_open.session_id,
            "of another agent on that board": both_open.session_id,
            "expired": expired.session_id,
            "aborted": aborted.session_id,
            "committed": old.session_id,
        }
        yield Stage(world, ada, sessions, own_node, far_node, own_constraint)


def test_the_arguments_that_the_table_starts_from_are_good_ones(stage: Stage) -> None:
    with opened() as world:
        world.board("alpha")
        agent = world.agent()
        first = agent.begin()
        first.decide("Calls end after an hour", "Nothing may run longer.")
        first.add("Constraint", "A call takes a minute at most")
        node_id, constraint = (a["node_id"] for a in first.commit()["applied"]["added"])
        session = agent.begin()
        session.decide("Calls end after a minute", "Nothing may run longer.")
        session.decide("Calls are logged")
        here = Stage(world, agent, {"open": session.session_id}, node_id, "", constraint)
        for tool in TOOLS:
            if tool != "abort_consolidation":  # it was committed by then
                agent.call(tool, **here.good(tool))


# What the schema says.


def _code(argument: Argument) -> str:
    """An override without a fit reason is an override that can't be applied; all else is an argument that can't be read."""
    return "invalid_override" if argument.path == "agent_overrides[0].rationale" else "invalid_argument"


@pytest.mark.parametrize(("tool", "argument"), ARGUMENTS, ids=_name)
def test_no_argument_takes_what_it_is_not_made_for(stage: Stage, tool: str, argument: Argument) -> None:
    found = []
    for name, value in OF_NO_USE[argument.kind].items():
        status, code, path = 422, _code(argument), argument.path
        if argument.path in {"body", "answer_text", "cypher"} and value is TWENTY_MB:
            status, code, path = 413, "payload_too_large", ""
        paths = (path,) if path else ()
        found += stage.faults(
            tool, f"{argument.path}: {name}", replaced(stage.good(tool), argument.path, value), status=status, code=code, paths=paths
        )
    assert found == []


@pytest.mark.parametrize(("tool", "argument"), [(t, a) for t, a in ARGUMENTS if a.required], ids=_name)
def test_what_is_required_may_be_neither_null_nor_left_out(stage: Stage, tool: str, argument: Argument) -> None:
    expected: dict[str, Any] = {"status": 422, "code": _code(argument), "paths": (argument.path,)}
    good = stage.good(tool)
    found = stage.faults(tool, f"null as {argument.path}", replaced(good, argument.path, None), **expected)
    if not argument.path.endswith("]"):
        found += stage.faults(tool, f"no {argument.path}", removed(good, argument.path), **expected)
    assert found == []


@pytest.mark.parametrize(("tool", "path"), OBJECTS)
def test_unknown_arguments_are_named(stage: Stage, tool: str, path: str) -> None:
    found = []
    for name, key in UNKNOWN_KEYS.items():
        place = _unknown_at(stage.good(tool), path, key)
        found += stage.faults(tool, f"an unknown key in '{path}': {name}", place, status=422, code="invalid_argument")
        before_its_end = path.rpartition("]")[0] + "]" if path.endswith("]") else path
        found += stage.faults(
            tool, f"{name} in '{path}'", place, status=422, code="invalid_argument", paths=(before_its_end,) if path else ()
        )
    assert found == []
    error = stage.ada.refusal(tool, **{**stage.good(tool), "bord_id": "x", "colour": "red"})
    assert [p["path"] for p in error["details"]["problems"]] == ["bord_id", "colour"]


def _unknown_at(arguments: dict[str, Any], path: str, key: str) -> dict[str, Any]:
    if not path:
        return {**arguments, key: "x"}
    here: Any = arguments
    for step in path.replace("[0]", ".0").split("."):
        here = here[int(step)] if step.isdigit() else here[step]
    return replaced(arguments, path, {**here, key: "x"})


@pytest.mark.parametrize("tool", TOOLS)
def test_arguments_are_an_object(stage: Stage, tool: str) -> None:
    values: dict[str, object] = {"null": None, "a list": [], "a text": "x", "a number": 1, "a fraction": 4.5, "a boolean": True}
    values |= {"a list of pairs": [["session_id", stage.sessions["open"]]], "5,000 lists": nested(5_000)}
    found = []
    for name, value in values.items():
        found += stage.faults(tool, name, value, status=422, code="invalid_argument", paths=("",))
    required = SCHEMAS[tool].get("required", [])
    found += stage.faults(tool, "an empty object", {}, status=422, code="invalid_argument", paths=tuple(required))
    assert found == []


# Beyond the schema.


@pytest.mark.parametrize(
    ("tool", "argument", "value"),
    [
        ("begin_consolidation", "board_id", ""),
        ("begin_consolidation", "board_id", "_alpha"),
        ("begin_consolidation", "board_id", "Alpha"),
        ("begin_consolidation", "board_id", "alpha\n"),
        ("begin_consolidation", "board_id", "alpha "),
        ("begin_consolidation", "board_id", "аlpha"),  # the first letter is Cyrillic
        ("begin_consolidation", "board_id", "ａlpha"),  # full width
        ("begin_consolidation", "board_id", "alpha\u200b"),
        ("begin_consolidation", "board_id", "alpha' OR '1'='1"),
        ("begin_consolidation", "board_id", "a" * 65),
        ("begin_consolidation", "source_type", "Spec"),
        ("begin_consolidation", "source_type", "spec\n"),
        ("begin_consolidation", "source_type", "s" * 33),
        ("begin_consolidation", "source_type", "ѕpec"),
        ("begin_consolidation", "source_id", ""),
        ("begin_consolidation", "source_id", "   "),
        ("begin_consolidation", "source_id", "a\tb"),
        ("begin_consolidation", "source_id", "a\nb"),
        ("begin_consolidation", "source_id", "a\u2028b"),
        ("begin_consolidation", "source_id", "a\u202eb"),
        ("begin_consolidation", "source_id", "i" * 201),
        ("begin_consolidation", "payload_hash", ""),
        ("begin_consolidation", "payload_hash", "sha256:" + "AB" * 32),
        ("begin_consolidation", "payload_hash", "sha256:" + "ab" * 31),
        ("begin_consolidation", "payload_hash", "sha256:" + "ab" * 32 + "\n"),
        ("begin_consolidation", "payload_hash", "sha256:" + "１" * 64),
        ("begin_consolidation", "payload_hash", "md5:" + "ab" * 32),
        ("begin_consolidation", "source_version", 2**53),
        ("add_node_candidate", "node_type", ""),
        ("add_node_candidate", "node_type", "decision"),
        ("add_node_candidate", "node_type", "Ｄecision"),
        ("add_node_candidate", "title", ""),
        ("add_node_candidate", "title", " \t\n "),
        ("add_node_candidate", "title", "\u2003\u3000"),
        ("add_node_candidate", "title", "t" * 501),
        ("add_node_candidate", "idempotency_key", ""),
        ("add_node_candidate", "idempotency_key", "k" * 129),
        ("add_node_candidate", "session_id", ""),
        ("add_node_candidate", "source_ref", {}),
        ("add_node_candidate", "source_ref", {"section": "limits"}),
        ("add_node_candidate", "source_ref", {"spec_id": "a", "card_id": "b"}),
        ("add_node_candidate", "source_ref", {"spec_id": None, "section": "limits"}),
        ("add_node_candidate", "source_ref", {"artifact_id": "a"}),
        ("add_node_candidate", "source_ref", {"artifact_type": "memo"}),
        ("add_node_candidate", "source_ref", {"spec_id": "a", "artifact_type": "memo"}),
        ("add_node_candidate", "source_ref", {"artifact_id": "a", "artifact_type": "Memo"}),
        ("add_node_candidate", "source_ref", {"spec_id": ""}),
        ("add_node_candidate", "source_ref", {"spec_id": " "}),
        ("add_node_candidate", "source_ref", {"spec_id": "a", "section": " "}),
        ("add_node_candidate", "source_ref", {"spec_id": "a", "section": "s" * 501}),
        ("add_edge_candidate", "rel_type", "Supersedes"),
        ("add_edge_candidate", "rel_type", ""),
        ("add_edge_candidate", "src", {}),
        ("add_edge_candidate", "dst", {}),
        ("add_edge_candidate", "src", {"candidate_id": None, "node_id": None}),
        ("add_edge_candidate", "src", {"candidate_id": "cand_001", "node_id": "dec_1"}),
        ("add_edge_candidate", "src.candidate_id", ""),
        ("add_edge_candidate", "src", {"node_id": "dec-1"}),
        ("add_edge_candidate", "src", {"node_id": "dec_"}),
        ("add_edge_candidate", "src", {"node_id": "dec_1\n"}),
        ("add_edge_candidate", "src", {"node_id": "dеc_1"}),  # a Cyrillic е
        ("add_edge_candidate", "src", {"node_id": "dec_１"}),
        ("add_edge_candidate", "src", {"node_id": "dec_" + "1" * 65}),
        ("get_similar_nodes", "k", 0),
        ("get_similar_nodes", "k", 51),
        ("get_similar_nodes", "candidate_id", ""),
        ("commit_consolidation", "agent_overrides", [{}]),
        ("commit_consolidation", "agent_overrides", [None]),
        ("commit_consolidation", "agent_overrides", [[]]),
        ("commit_consolidation", "agent_overrides", ["cand_001"]),
        ("commit_consolidation", "agent_overrides", [{"candidate_id": "cand_001", "hint": "ADD", "rationale": "x"}] * 501),
        ("commit_consolidation", "agent_overrides[0].hint", "add"),
        ("commit_consolidation", "agent_overrides[0].hint", ""),
        ("commit_consolidation", "agent_overrides[0].target_node", ""),
        ("commit_consolidation", "agent_overrides[0].target_node", "the old one"),
        ("abort_consolidation", "session_id", ""),
        ("abort_consolidation", "session_id", "k" * 65),
    ],
)
def test_what_only_looks_right_is_refused_with_its_path(stage: Stage, tool: str, argument: str, value: object) -> None:
    arguments = replaced(stage.good(tool), argument, value)

    assert stage.faults(tool, argument, arguments, status=422, code="invalid_argument", paths=(argument,)) == []


def test_all_faults_of_an_input_are_told_together(stage: Stage) -> None:
    def paths(tool: str, **arguments: Any) -> list[str]:
        error = stage.ada.refusal(tool, **arguments)
        assert error["code"] == "invalid_argument"
        return sorted(p["path"] for p in error["details"]["problems"])

    begin = {"board_id": "A", "source_type": 1, "source_id": " ", "source_version": -1, "payload_hash": "x", "colour": "red"}
    assert paths("begin_consolidation", **begin) == sorted(begin)
    assert paths(
        "add_node_candidate",
        session_id="",
        node_type="Constraint",
        title="\0",
        body=1,
        attributes={"severity": "huge", "confidence": 2, "scope": 7},
        source_ref={"spec_id": "a", "where": "b"},
        idempotency_key="",
    ) == [
        "attributes.confidence",
        "attributes.scope",
        "attributes.severity",
        "body",
        "idempotency_key",
        "session_id",
        "source_ref.where",
        "title",
    ]
    assert paths("add_edge_candidate", session_id=1, src={}, dst={"node_id": "?"}, rel_type="likes", attributes=[]) == [
        "attributes",
        "dst.node_id",
        "rel_type",
        "session_id",
        "src",
    ]
    overrides = [{"candidate_id": "cand_001", "hint": "KEEP", "rationale": ""}, {"hint": "ADD", "rationale": "x", "why": "y"}]
    assert paths("commit_consolidation", session_id="x", agent_overrides=overrides) == [
        "agent_overrides[0].hint",
        "agent_overrides[0].rationale",
        "agent_overrides[1].candidate_id",
        "agent_overrides[1].why",
    ]


@pytest.mark.parametrize(
    ("node_type", "key", "value"),
    [
        ("Decision", "confidence", True),
        ("Decision", "confidence", "0.5"),
        ("Decision", "confidence", 1.0000001),
        ("Decision", "confidence", -1e-9),
        ("Decision", "confidence", 2**63),
        ("Decision", "confidence", None),
        ("Decision", "confidence", []),
        ("Decision", "status", "superseded"),
        ("Decision", "status", ["active"]),
        ("Decision", "decided_at", "yesterday"),
        ("Decision", "decided_at", "2026-02-30"),
        ("Decision", "decided_at", "２０２６-01-01"),
        ("Decision", "decided_at", 0),
        ("Decision", "decided_at", "9999-99-99T99:99:99Z"),
        ("Decision", "rationale", "r" * 4_001),
        ("Decision", "rationale", {"why": "because"}),
        ("Criterion", "threshold", True),
        ("Criterion", "threshold", []),
        ("Assumption", "validated", 1),
        ("Assumption", "validated", "true"),
        ("Entity", "aliases", "one"),
        ("Entity", "aliases", [1]),
        ("Entity", "aliases", ["a"] * 51),
        ("Entity", "aliases", [None]),
        ("APIContract", "request_schema", [{}]),
        ("APIContract", "request_schema", 4),
        ("Requirement", "priority", "Must"),
    ],
)
def test_an_attribute_of_a_wrong_kind_is_refused_at_the_add(stage: Stage, node_type: str, key: str, value: object) -> None:
    arguments = {**stage.good("add_node_candidate"), "node_type": node_type, "attributes": {key: value}}
    path = f"attributes.{key}"

    assert stage.faults("add_node_candidate", path, arguments, status=422, code="invalid_attribute", paths=(path,)) == []


@pytest.mark.parametrize(
    "attributes",
    [
        {"request_schema": {"a": nested(40)}},
        {"request_schema": {"n": 10**5_000}},
        {"request_schema": {"n": -(10**400)}},
        {"request_schema": {"n": float("nan")}},
        {"request_schema": {"n": float("inf")}},
        {"request_schema": {"t": "\0"}},
        {"request_schema": {"\ud800": 1}},
        {"request_schema": {"a": [{"b": "\udfff"}]}},
        {"\0": 1},
        {"unknown": "\x85"},
        {"k" * 1_000_000: "\0"},
        {"k" * 1_000_000: {"l" * 1_000_000: ["\0"] * 60}},
    ],
    ids=range(12),
)
@pytest.mark.parametrize("tool", ["add_node_candidate", "add_edge_candidate"])
def test_what_no_argument_may_hold_no_attribute_holds_however_deep(stage: Stage, tool: str, attributes: dict[str, Any]) -> None:
    arguments = {**stage.good(tool), "attributes": attributes} | ({"node_type": "APIContract"} if tool == "add_node_candidate" else {})

    assert stage.faults(tool, "attributes", arguments, status=422, code="invalid_argument", paths=("attributes",)) == []


@pytest.mark.parametrize(
    "attributes",
    [{"rationale": TWENTY_MB}, {"k" * 1_000_000: 1}, {"unknown": ["x" * 1_000] * 60}, {f"key {n}": n for n in range(10_000)}],
    ids=["a long text", "a long key", "a long list", "many keys"],
)
@pytest.mark.parametrize("tool", ["add_node_candidate", "add_edge_candidate"])
def test_attributes_over_the_candidates_size_are_refused_whatever_they_are(stage: Stage, tool: str, attributes: dict[str, Any]) -> None:
    arguments = {**stage.good(tool), "attributes": attributes}

    assert stage.faults(tool, "attributes", arguments, status=413, code="payload_too_large") == []


# Null for what is optional, and the courtesies.


def test_null_for_what_is_optional_is_as_good_as_nothing(world: World, agent: Agent) -> None:
    session = agent.begin()
    for arguments in ({}, {"payload_hash": None}):
        begun = agent.call("begin_consolidation", board_id="alpha", source_type="spec", source_id="s", source_version=1, **arguments)
        assert begun["hash_basis"] == "version"
    nothing: dict[str, Any] = {"body": None, "attributes": None, "source_ref": None, "idempotency_key": None}
    assert session.add("Decision", "One") == "cand_001"
    added = agent.call("add_node_candidate", session_id=session.session_id, node_type="Decision", title="Two", **nothing)
    assert added == {"candidate_id": "cand_002", "node_type": "Decision", "embedding_status": "queued"}
    for number, k in enumerate(({}, {"k": None})):
        similar = agent.call("get_similar_nodes", session_id=session.session_id, candidate_id="cand_001", **k)
        assert similar["matches"] == [], number
    edge = agent.call(
        "add_edge_candidate",
        session_id=session.session_id,
        src={"candidate_id": "cand_001", "node_id": None},
        dst={"candidate_id": "cand_002", "node_id": None},
        rel_type="relates_to",
        attributes=None,
        idempotency_key=None,
    )
    assert edge["valid"] is True
    override = {"candidate_id": "cand_001", "hint": "ADD", "rationale": "It is new.", "target_node": None}
    answer = agent.call("commit_consolidation", session_id=session.session_id, agent_overrides=[override])
    assert len(answer["applied"]["added"]) == 2
    again = agent.begin()
    again.decide("Three")
    assert agent.call("commit_consolidation", session_id=again.session_id, agent_overrides=None)["committed"] is True


def test_whole_numbers_may_be_written_as_fractions(agent: Agent) -> None:
    begun = agent.call("begin_consolidation", board_id="alpha", source_type="spec", source_id="s", source_version=4.0)
    agent.call("add_node_candidate", session_id=begun["session_id"], node_type="Decision", title="One")

    assert agent.call("get_similar_nodes", session_id=begun["session_id"], candidate_id="cand_001", k=5.0)["matches"] == []


def test_harmless_oddities_are_kept_to_the_letter(world: World, agent: Agent) -> None:
    title, body = "𝔘nicode \u202e and 'quotes' -- ; DROP TABLE nodes", "tab\there\nline\u2028separator \U0010ffff \ufffe 👩\u200d👩\u200d👧"
    session = agent.begin("sp:ec#100%")
    session.add("APIContract", title, body, attributes={"request_schema": {"": [nested(20), 1e300, -0.0, 2**60]}, "path": "/a?b=\\"})

    node_id = session.commit()["applied"]["added"][0]["node_id"]

    node = world.node(node_id)
    assert (node.title, node.body, node.artifact) == (title, body, "spec:sp%3Aec%23100%25")
    assert node.attributes == {"request_schema": {"": [nested(20), 1e300, -0.0, 2**60]}, "path": "/a?b=\\"}


# Sessions, candidates and nodes that are not one's own.


@pytest.mark.parametrize("tool", SESSION_TOOLS)
def test_a_session_that_is_not_open_and_ones_own_takes_nothing(stage: Stage, tool: str) -> None:
    own = stage.sessions["open"]
    unknown = {
        "unknown": "kgs_01KDVDNZG0000000000000000Z",
        "no id at all": "' OR 1=1 --",
        "in lower case": own.lower(),
        "in full width": own.replace("0", "０"),
        "with a Cyrillic К": own.replace("K", "К"),
        "with a blank": f"{own} ",
        "with a newline": f"{own}\n",
        "without its last digit": own[:-1],
        "a candidate": "cand_001",
        "a node": stage.own_node,
        "a wildcard": "kgs_%",
    }
    cases = [(name, session_id, 404, "session_not_found") for name, session_id in unknown.items()]
    cases += [(name, stage.sessions[name], 404, "session_not_found") for name in stage.sessions if "that" in name]
    cases.append(("of another agent", stage.sessions["of another agent"], 403, "session_ownership_mismatch"))
    if tool != "abort_consolidation":
        cases += [(state, stage.sessions[state], 409, f"session_{state}") for state in ("expired", "aborted")]
    if tool != "commit_consolidation":
        cases.append(("committed", stage.sessions["committed"], 409, "session_already_committed"))
    found = []
    for name, session_id, status, code in cases:
        arguments = {**stage.good(tool), "session_id": session_id}
        found += stage.faults(tool, f"a session {name}", arguments, status=status, code=code)
    assert found == []


STRANGE_CANDIDATES = {
    "unknown": "cand_999",
    "the first number that is free": "cand_003",
    "number nought": "cand_000",
    "a negative number": "cand_-01",
    "too few digits": "cand_1",
    "too many digits": "cand_0001",
    "full width": "cand_００１",
    "Arabic digits": "cand_٠٠١",
    "a newline": "cand_001\n",
    "capitals": "CAND_001",
    "an edge": "edge_cand_001",
    "a huge number": "cand_" + "9" * 50,
    "no number": "cand_",
    "a blank": " ",
    "a statement": "cand_001' OR '1'='1",
}


def test_candidates_that_are_not_of_the_session_are_not_found(stage: Stage) -> None:
    found = []
    for name, candidate_id in STRANGE_CANDIDATES.items():
        for tool, path in (("get_similar_nodes", "candidate_id"), ("add_edge_candidate", "src"), ("add_edge_candidate", "dst")):
            value: object = candidate_id if tool == "get_similar_nodes" else {"candidate_id": candidate_id}
            arguments = replaced(stage.good(tool), path, value)
            found += stage.faults(tool, f"{path} {name}", arguments, status=404, code="candidate_not_found")
        arguments = replaced(stage.good("commit_consolidation"), "agent_overrides[0].candidate_id", candidate_id)
        where = ("agent_overrides[0].candidate_id",)
        found += stage.faults("commit_consolidation", name, arguments, status=422, code="invalid_override", paths=where)
    assert found == []


def test_nodes_that_are_not_of_the_board_are_not_found(stage: Stage) -> None:
    found = []
    ids = {"unknown": "dec_0000000000000000", "of another board": stage.far_node, "an edge": "edge_0123456789abcdef"}
    ids |= {"a session": "kgs_0123456789ABCDEF", "in capitals": "dec_" + stage.own_node[4:].upper() + "A"}
    for name, node_id in ids.items():
        for path in ("src", "dst"):
            arguments = replaced(stage.good("add_edge_candidate"), path, {"node_id": node_id})
            found += stage.faults("add_edge_candidate", f"{path} {name}", arguments, status=404, code="node_not_found")
        arguments = replaced(stage.good("commit_consolidation"), "agent_overrides[0].target_node", node_id)
        where = ("agent_overrides[0].target_node",)
        found += stage.faults("commit_consolidation", name, arguments, status=422, code="invalid_override", paths=where)
    assert found == []


def test_a_board_that_is_not_granted_and_one_that_is_not_there_are_refused(stage: Stage) -> None:
    found = []
    for board_id in ("beta", "nosuch", "a" * 64, "null", "0"):
        arguments = {**stage.good("begin_consolidation"), "board_id": board_id}
        found += stage.faults("begin_consolidation", board_id, arguments, status=403, code="permission_denied")
    assert found == []


@pytest.mark.parametrize(
    "name", ["", "nosuch", "okto_pulse_kg_", "okto_pulse_kg_okto_pulse_kg_abort_consolidation", "\ud800", "../healthz"]
)
def test_an_unknown_tool_is_told_which_there_are(stage: Stage, name: str) -> None:
    assert stage.faults(name, "no arguments", {}, status=404, code="tool_not_found") == []
    error = stage.ada.refusal(name)
    assert error["details"]["tools"] == sorted(TOOL_PREFIX + tool for tool in TOOLS)


# The same over HTTP.


@pytest.fixture(scope="module")
def edge(stage: Stage) -> HttpEdge:
    """The routes over the stage's tools."""
    return HttpEdge(stage.world.host, server_name="t", server_version="0", instructions="-", check_health=lambda: None)


def _post(stage: Stage, edge: HttpEdge, path: str, body: bytes, **headers: str) -> HttpResponse:
    usual = {"content-type": "application/json", "accept": "application/json", "x-api-key": stage.ada.api_key}
    return edge.handle(HttpRequest("POST", path, {**usual, **{name.replace("_", "-"): value for name, value in headers.items()}}, body))


DEEP_TEXT = b'{"session_id":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
UNREADABLE: Mapping[str, bytes] = {
    "no JSON": b"session",
    "half an object": b'{"session_id": "x',
    "two objects": b"{}{}",
    "a trailing comma": b'{"session_id": "x",}',
    "single quotes": b"{'session_id': 'x'}",
    "not UTF-8": b'{"session_id": "\xff"}',
    "UTF-16": '{"session_id": "x"}'.encode("utf-16"),
    "an overlong NUL": b'{"session_id": "\xc0\x80"}',
    "a surrogate in UTF-8": b'{"session_id": "\xed\xa0\x80"}',
    "NaN": b'{"k": NaN}',
    "Infinity": b'{"k": -Infinity}',
    "1e999": b'{"k": 1e999}',
    "5,000 digits": b'{"k": ' + b"9" * 5_000 + b"}",
    "a name twice": b'{"session_id": "a", "session_id": "b"}',
    "5,000 levels": DEEP_TEXT,
    "200,000 brackets": b"[" * 200_000,
    "200,000 braces": b'{"a":' * 200_000,
    "101 levels": b'{"a":' + b"[" * 101 + b"]" * 101 + b"}",
    "a list": b"[]",
    "a text": b'"x"',
    "null": b"null",
    "a number": b"1",
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("tool", ["commit_consolidation", "okto_pulse_kg_get_similar_nodes"])
def test_a_body_that_can_not_be_read_is_refused_by_a_tools_route(stage: Stage, edge: HttpEdge, tool: str, body: bytes) -> None:
    before = dump(stage.world.container)

    response = _post(stage, edge, f"/tools/{tool}", body)

    told = json.loads(response.body)
    assert (response.status, told["error"]["code"]) == (400, "invalid_request")
    assert fault_of_envelope(told, canaries=(CANARY,)) is None
    assert dump(stage.world.container) == before


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
def test_a_body_that_can_not_be_read_is_a_protocol_error_at_the_mcp_url(stage: Stage, edge: HttpEdge, body: bytes) -> None:
    response = _post(stage, edge, "/mcp", body)

    assert response.status == 400
    error = json.loads(response.body)["error"]
    assert error["code"] in {-32700, -32600}
    assert len(response.body) < 2_000


SPELT_WITH_ESCAPES = {"\\u0000": "title", "\\ud800": "title", "\\udc00\\ud800": "body", "\\u009b": "session_id", "\\u001b": "node_type"}


@pytest.mark.parametrize(("escape", "argument"), SPELT_WITH_ESCAPES.items())
def test_escapes_smuggle_nothing_in(stage: Stage, edge: HttpEdge, escape: str, argument: str) -> None:
    before = dump(stage.world.container)
    good = json.dumps({**stage.good("add_node_candidate"), argument: "MARK"}).replace("MARK", f"a{escape}b")
    call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"okto_pulse_kg_add_node_candidate","arguments":' + good + "}}"

    direct = _post(stage, edge, "/tools/add_node_candidate", good.encode())
    protocol = json.loads(_post(stage, edge, "/mcp", call.encode(), mcp_protocol_version="2025-11-25").body)["result"]

    told = json.loads(direct.body)
    assert (direct.status, told["error"]["code"]) == (422, "invalid_argument")
    assert [p["path"] for p in told["error"]["details"]["problems"]] == [argument]
    assert protocol["isError"] is True
    assert json.loads(protocol["content"][0]["text"])["error"]["details"] == told["error"]["details"]
    assert dump(stage.world.container) == before


@pytest.mark.parametrize("arguments", [[], "x", 1, True, [["session_id", "x"]]], ids=str)
def test_arguments_of_a_call_over_mcp_are_an_object_too(stage: Stage, edge: HttpEdge, arguments: object) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "okto_pulse_kg_abort_consolidation", "arguments": arguments},
    }

    answer = json.loads(_post(stage, edge, "/mcp", json.dumps(call).encode(), mcp_protocol_version="2025-11-25").body)

    told = json.loads(answer["result"]["content"][0]["text"])
    assert (answer["result"]["isError"], told["error"]["code"]) == (True, "invalid_argument")
    assert fault_of_envelope(told) is None


def test_every_hostile_value_that_json_can_spell_is_refused_the_same_over_http(stage: Stage, edge: HttpEdge) -> None:
    found = []
    for tool, argument in ARGUMENTS:
        for name in ("a number", "a boolean", "a list", "an object", *HOSTILE_TEXT):
            if name not in OF_NO_USE[argument.kind] or OF_NO_USE[argument.kind][name] is TWENTY_MB:
                continue
            arguments = replaced(stage.good(tool), argument.path, OF_NO_USE[argument.kind][name])
            here = stage.ada.try_call(tool, arguments).body["error"]
            response = _post(stage, edge, f"/tools/{tool}", json.dumps(arguments).encode())
            there = json.loads(response.body)["error"]
            if (response.status, there["code"], there["details"]) != (here["status"], here["code"], here["details"]):
                found.append(f"{tool} {argument.path} {name}: {response.status} {there}")
    assert found == []


@pytest.mark.parametrize("path", ["/mcp", "/tools/add_node_candidate"])
def test_a_body_over_the_limit_is_refused_before_it_is_read(stage: Stage, edge: HttpEdge, path: str) -> None:
    large = b'{"title": "' + b"x" * edge.max_body_bytes + b'"}'

    for body, headers in ((large, {}), (b"{}", {"content_length": "99999999999"})):
        response = _post(stage, edge, path, body, **headers)
        told = json.loads(response.body)
        assert (response.status, told["error"]["code"]) == (413, "payload_too_large")
        assert fault_of_envelope(told) is None


@pytest.mark.parametrize("path", ["/mcp", "/tools/add_node_candidate", "/tools/nosuch"])
@pytest.mark.parametrize(
    "key",
    ["", "pk_", "pk_aaaaaaaa_", "Bearer x", "pk_aaaaaaaa_" + "a" * 52, "pk_\u0430aaaaaaa_" + "a" * 52, "x" * 100_000, "\ud800", "a\0b"],
)
def test_without_a_good_key_nothing_is_looked_at(stage: Stage, edge: HttpEdge, path: str, key: str) -> None:
    answers = set()
    for headers in ({"x_api_key": key}, {"x_api_key": "", "authorization": f"Bearer {key}"}):
        response = _post(stage, edge, path, b"\xff", **headers)
        told = json.loads(response.body)
        assert (response.status, told["error"]["code"]) == (401, "unauthorized")
        assert response.headers["www-authenticate"] == "Bearer"
        answers.add(told["error"]["message"])
    assert len(answers) == 1


@pytest.mark.parametrize("path", ["/tools/", "/tools", "/", "/tools/a/b", "/mcp/x", "/tools/../mcp", "/tools/\ud800/x"])
def test_paths_that_nothing_serves_are_refused(stage: Stage, edge: HttpEdge, path: str) -> None:
    response = _post(stage, edge, path, b"{}")

    assert response.status == 404
    assert fault_of_envelope(json.loads(response.body)) is None
