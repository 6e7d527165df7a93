"""The graph's schema: types, endpoint pairs, attributes and canonical JSON."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pulse_kg.domain.schema import (
    ADDED_KEY,
    AGENT_REL_TYPES,
    ATTRIBUTES,
    EDGE_ATTRIBUTES,
    ENDPOINT_PAIRS,
    NODE_PREFIXES,
    NODE_TYPES,
    REL_TYPES,
    RESERVED_KEYS,
    RESERVED_REL_TYPES,
    SCHEMA_VERSION,
    SEARCHABLE_TYPES,
    AttributeSpec,
    NodeType,
    RelType,
    canonical_json,
    check_edge_attributes,
    check_node_attributes,
    is_undirected,
)

LONG = "x" * 4_000
TOO_LONG = "x" * 4_001
CLAIMS = "Decision Constraint Requirement Assumption"
DEPENDENTS = f"{CLAIMS} Criterion TestScenario APIContract"
EVERY = "Decision Criterion Constraint Assumption Requirement Entity APIContract TestScenario Bug Learning Alternative"
ENDS: dict[RelType, list[tuple[str, str]]] = {
    "contradicts": [(CLAIMS, CLAIMS)],
    "derives_from": [("Decision Constraint Criterion Requirement", "Requirement Entity Decision")],
    "relates_to": [(EVERY, EVERY)],
    "mentions": [(EVERY, "Entity")],
    "depends_on": [(DEPENDENTS, DEPENDENTS)],
    "violates": [("Bug", "Constraint Requirement")],
    "implements": [("APIContract", "Requirement")],
    "tests": [("TestScenario", "Criterion")],
    "validates": [("Learning", "Bug Decision Assumption"), ("TestScenario", "Requirement Criterion")],
    "belongs_to": [(EVERY, "Entity")],
}


class TestTypes:
    def test_the_version_is_the_published_one(self) -> None:
        assert SCHEMA_VERSION == "0.3.3"

    def test_node_types_come_in_the_contracts_order(self) -> None:
        assert list(NODE_TYPES) == EVERY.split()

    def test_relationships_come_in_the_contracts_order(self) -> None:
        assert " ".join(REL_TYPES) == (
            "supersedes contradicts derives_from relates_to mentions depends_on violates implements tests validates belongs_to"
        )

    def test_agents_write_five_relationships_and_the_other_six_are_reserved(self) -> None:
        assert AGENT_REL_TYPES == ("supersedes", "contradicts", "depends_on", "relates_to", "validates")
        assert RESERVED_REL_TYPES == ("derives_from", "mentions", "violates", "implements", "tests", "belongs_to")

    def test_five_types_are_searchable_by_vector(self) -> None:
        assert SEARCHABLE_TYPES == ("Decision", "Constraint", "Requirement", "Entity", "Learning")

    def test_each_type_has_a_prefix_of_its_own(self) -> None:
        assert len(set(NODE_PREFIXES.values())) == len(NODE_TYPES)


class TestEndpointPairs:
    @pytest.mark.parametrize("rel_type", list(ENDS))
    def test_a_relationship_joins_exactly_the_contracts_pairs(self, rel_type: RelType) -> None:
        expected = {(src, dst) for sources, targets in ENDS[rel_type] for src in sources.split() for dst in targets.split()}
        assert set(ENDPOINT_PAIRS[rel_type]) == expected
        assert len(ENDPOINT_PAIRS[rel_type]) == len(expected)

    def test_supersedes_joins_a_type_with_itself_only(self) -> None:
        assert ENDPOINT_PAIRS["supersedes"] == tuple((t, t) for t in NODE_TYPES)

    def test_every_relationship_has_its_pairs(self) -> None:
        assert list(ENDPOINT_PAIRS) == list(REL_TYPES)

    @pytest.mark.parametrize("rel_type", REL_TYPES)
    def test_only_contradicts_and_relates_to_between_equal_types_have_no_direction(self, rel_type: RelType) -> None:
        assert is_undirected(rel_type, equal_types=True) == (rel_type in {"contradicts", "relates_to"})
        assert is_undirected(rel_type, equal_types=False) == (rel_type == "contradicts")


TEXTS = [
    ("Decision", "rationale"),
    ("Criterion", "measure"),
    ("Constraint", "scope"),
    ("Constraint", "rationale"),
    ("Assumption", "rationale"),
    ("Entity", "kind"),
    ("APIContract", "method"),
    ("APIContract", "path"),
    ("TestScenario", "given"),
    ("TestScenario", "when"),
    ("TestScenario", "then"),
    ("Bug", "status"),
    ("Learning", "area"),
    ("Alternative", "reason_discarded"),
]
INSTANTS = [("Decision", "decided_at"), ("Bug", "resolved_at"), ("Learning", "captured_at")]
CHOICES = [
    ("Decision", "status", "active revoked", "superseded"),
    ("Constraint", "severity", "low medium high critical", "minor"),
    ("Requirement", "kind", "functional technical business", "legal"),
    ("Requirement", "priority", "must should could wont", "won't"),
    ("Bug", "severity", "minor major critical", "high"),
]
SCHEMAS = [("APIContract", "request_schema"), ("APIContract", "response_schema")]


def takes(node_type: NodeType, key: str, value: Any) -> bool:
    checked = check_node_attributes(node_type, {key: value})
    assert checked.unknown == ()
    assert checked.known == {key: value}
    assert [p.path for p in checked.problems] in ([], [f"attributes.{key}"])
    return not checked.problems


class TestAttributes:
    def test_the_types_have_exactly_the_contracts_attributes(self) -> None:
        named = {(t, k) for t, k in TEXTS + INSTANTS + SCHEMAS} | {(t, k) for t, k, _, _ in CHOICES}
        named |= {("Criterion", "threshold"), ("Assumption", "validated"), ("Entity", "aliases")}
        assert {(t, k) for t, keys in ATTRIBUTES.items() for k in keys} == named

    @pytest.mark.parametrize(("node_type", "key"), TEXTS)
    def test_a_text_has_at_most_4000_characters(self, node_type: NodeType, key: str) -> None:
        assert takes(node_type, key, LONG)
        assert takes(node_type, key, "")
        assert not takes(node_type, key, TOO_LONG)
        assert not takes(node_type, key, 7)
        assert not takes(node_type, key, None)
        assert not takes(node_type, key, ["a text"])

    @pytest.mark.parametrize(("node_type", "key"), INSTANTS)
    def test_a_time_is_a_date_or_an_instant(self, node_type: NodeType, key: str) -> None:
        assert takes(node_type, key, "2026-05-07")
        assert takes(node_type, key, "2026-05-07T16:30:00+02:00")
        assert not takes(node_type, key, "2026-02-30")
        assert not takes(node_type, key, "2026-05-07T16:30:00")
        assert not takes(node_type, key, 1_778_171_400_000)

    @pytest.mark.parametrize(("node_type", "key", "words", "other"), CHOICES)
    def test_a_choice_is_one_of_its_words(self, node_type: NodeType, key: str, words: str, other: str) -> None:
        assert all(takes(node_type, key, word) for word in words.split())
        assert not takes(node_type, key, other)
        assert not takes(node_type, key, words.partition(" ")[0].upper())
        assert not takes(node_type, key, [words.partition(" ")[0]])

    def test_superseded_is_a_status_that_only_the_system_gives(self) -> None:
        assert not takes("Decision", "status", "superseded")

    def test_a_threshold_is_a_text_or_a_number(self) -> None:
        assert all(takes("Criterion", "threshold", value) for value in ("99.9 %", 99.9, 0, -3, 10**30))
        assert not any(takes("Criterion", "threshold", value) for value in (True, None, [99], TOO_LONG))

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, -(10**5_000)], ids=["nan", "inf", "-inf", "huge", "-huge"])
    def test_a_number_that_is_no_finite_double_is_refused(self, value: float) -> None:
        assert not takes("Criterion", "threshold", value)
        assert not takes("Criterion", "confidence", value)

    def test_validated_is_true_or_false(self) -> None:
        assert takes("Assumption", "validated", True)
        assert takes("Assumption", "validated", False)
        assert not any(takes("Assumption", "validated", value) for value in (1, 0, "true", None))

    def test_aliases_are_at_most_50_texts(self) -> None:
        assert takes("Entity", "aliases", [])
        assert takes("Entity", "aliases", ["a"] * 49 + [LONG])
        assert not any(takes("Entity", "aliases", value) for value in (["a"] * 51, ["a", 1], [TOO_LONG], "a", {"a": 1}))

    @pytest.mark.parametrize(("node_type", "key"), SCHEMAS)
    def test_a_schema_is_an_object_or_a_text(self, node_type: NodeType, key: str) -> None:
        assert takes(node_type, key, {"type": "object"})
        assert takes(node_type, key, "see openapi.yaml")
        assert not any(takes(node_type, key, value) for value in ([{"type": "object"}], 3, True, TOO_LONG))

    @pytest.mark.parametrize("node_type", NODE_TYPES)
    def test_every_type_takes_a_confidence_from_0_to_1(self, node_type: NodeType) -> None:
        assert all(takes(node_type, "confidence", value) for value in (0, 0.0, 0.7, 1, 1.0))
        assert not any(takes(node_type, "confidence", value) for value in (-0.01, 1.01, "0.7", True, None, 10**400))

    def test_unknown_keys_are_told_apart_and_sorted(self) -> None:
        checked = check_node_attributes("Decision", {"zeal": 1, "rationale": "r", "area": "not a Decision's"})
        assert checked.known == {"rationale": "r"}
        assert checked.unknown == ("area", "zeal")
        assert checked.problems == ()

    def test_all_problems_are_reported_together_each_with_its_path(self) -> None:
        checked = check_node_attributes("Decision", {"status": "done", "rationale": 1, "confidence": 2, "decided_at": "2026-05-07"})
        assert [p.path for p in checked.problems] == ["attributes.confidence", "attributes.rationale", "attributes.status"]
        assert checked.problems[2].problem == "must be one of active, revoked"

    def test_a_board_may_add_a_key_to_a_type(self) -> None:
        added: dict[NodeType, dict[str, AttributeSpec]] = {"Bug": {"component": AttributeSpec("text"), "votes": AttributeSpec("number")}}
        checked = check_node_attributes("Bug", {"component": "api", "votes": "many"}, added)
        assert checked.known == {"component": "api", "votes": "many"}
        assert [p.path for p in checked.problems] == ["attributes.votes"]
        assert check_node_attributes("Decision", {"component": "api"}, added).unknown == ("component",)

    def test_an_edge_takes_reason_evidence_and_confidence(self) -> None:
        assert set(EDGE_ATTRIBUTES) == {"reason", "evidence", "confidence"}
        checked = check_edge_attributes({"reason": "r", "evidence": LONG, "confidence": 0.5, "weight": 1})
        assert (checked.unknown, checked.problems) == (("weight",), ())
        faulty = check_edge_attributes({"reason": 1, "evidence": TOO_LONG, "confidence": -1})
        assert [p.path for p in faulty.problems] == ["attributes.confidence", "attributes.evidence", "attributes.reason"]


class TestAddedKeys:
    @pytest.mark.parametrize("key", ["component", "a", "a_1", "a" * 64])
    def test_an_added_key_is_lower_case(self, key: str) -> None:
        assert ADDED_KEY.fullmatch(key)
        assert key not in RESERVED_KEYS

    @pytest.mark.parametrize("key", ["", "1a", "_a", "A", "a-b", "a" * 65, "a\n"])
    def test_anything_else_is_no_key(self, key: str) -> None:
        assert not ADDED_KEY.fullmatch(key)

    @pytest.mark.parametrize(
        "key",
        "id title body source_ref artifact artifact_version source_session_id created_seq commit_seq version content_digest created_at "
        "updated_at created_by confidence relevance_score query_hits last_queried_at last_recomputed_at priority_boost superseded_by "
        "superseded_at revocation_reason human_curated label key vertex element edge property embedding board_id".split(),
    )
    def test_a_common_property_or_a_word_of_the_stores_is_reserved(self, key: str) -> None:
        assert key in RESERVED_KEYS


class TestCanonicalJson:
    def test_the_order_of_keys_does_not_count(self) -> None:
        assert canonical_json({"b": 1, "a": {"d": [2], "c": None}}) == canonical_json({"a": {"c": None, "d": [2]}, "b": 1})

    def test_it_is_compact_and_keeps_characters_as_they_are(self) -> None:
        assert canonical_json({"title": "Größe", "n": [1, 2]}) == '{"n":[1,2],"title":"Größe"}'

    def test_a_whole_float_is_an_integer(self) -> None:
        assert canonical_json([1.0, -0.0, 1e3, {"a": 2.0}, (3.0,)]) == '[1,0,1000,{"a":2},[3]]'

    def test_true_is_not_one(self) -> None:
        assert canonical_json(True) != canonical_json(1)

    def test_a_number_that_json_does_not_have_is_refused(self) -> None:
        with pytest.raises(ValueError, match="not JSON compliant"):
            canonical_json(math.nan)
