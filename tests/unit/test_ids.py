"""Identifiers: their forms, and those that follow from content."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from pulse_kg.domain import ids
from pulse_kg.domain.schema import NODE_TYPES, NodeType, RelType

PREFIXES = "dec crt con asm req ent api tst bug lrn alt".split()


class TestNodeIds:
    def test_a_repeated_commit_makes_the_same_id(self) -> None:
        once = ids.node_id("alpha", "kgs_1", "cand_001", "Decision")
        assert once == ids.node_id("alpha", "kgs_1", "cand_001", "Decision") == "dec_c2b09925bf7812cd"

    @pytest.mark.parametrize(("node_type", "prefix"), list(zip(NODE_TYPES, PREFIXES, strict=True)))
    def test_each_type_has_its_prefix_and_sixteen_hex_digits(self, node_type: NodeType, prefix: str) -> None:
        made = ids.node_id("alpha", "kgs_1", "cand_001", node_type)
        assert re.fullmatch(rf"{prefix}_[0-9a-f]{{16}}", made)
        assert ids.NODE_ID.fullmatch(made)

    @pytest.mark.parametrize(
        "other",
        [("beta", "kgs_1", "cand_001"), ("alpha", "kgs_2", "cand_001"), ("alpha", "kgs_1", "cand_002")],
        ids=["board", "session", "candidate"],
    )
    def test_another_board_session_or_candidate_makes_another_id(self, other: tuple[str, str, str]) -> None:
        assert ids.node_id(*other, "Decision") != ids.node_id("alpha", "kgs_1", "cand_001", "Decision")

    def test_the_parts_of_an_id_do_not_run_into_each_other(self) -> None:
        assert ids.node_id("a", "bc", "d", "Decision") != ids.node_id("ab", "c", "d", "Decision")


class TestEdgeIds:
    def test_the_same_edge_is_one_edge(self) -> None:
        once = ids.edge_id("alpha", "dec_a", "supersedes", "dec_b", equal_types=True)
        assert once == ids.edge_id("alpha", "dec_a", "supersedes", "dec_b", equal_types=True)
        assert re.fullmatch(r"edge_[0-9a-f]{16}", once)

    def test_another_board_relationship_or_end_makes_another_edge(self) -> None:
        made = {
            ids.edge_id("alpha", "dec_a", "supersedes", "dec_b", equal_types=True),
            ids.edge_id("beta", "dec_a", "supersedes", "dec_b", equal_types=True),
            ids.edge_id("alpha", "dec_a", "depends_on", "dec_b", equal_types=True),
            ids.edge_id("alpha", "dec_a", "supersedes", "dec_c", equal_types=True),
            ids.edge_id("alpha", "dec_c", "supersedes", "dec_b", equal_types=True),
        }
        assert len(made) == 5

    @pytest.mark.parametrize("rel_type", ["supersedes", "depends_on", "derives_from"])
    def test_a_directed_edge_and_its_reverse_are_two(self, rel_type: RelType) -> None:
        forth = ids.edge_id("alpha", "dec_a", rel_type, "dec_b", equal_types=True)
        assert forth != ids.edge_id("alpha", "dec_b", rel_type, "dec_a", equal_types=True)

    @pytest.mark.parametrize("equal_types", [True, False])
    def test_contradicts_has_no_direction(self, equal_types: bool) -> None:
        forth = ids.edge_id("alpha", "dec_a", "contradicts", "con_b", equal_types=equal_types)
        assert forth == ids.edge_id("alpha", "con_b", "contradicts", "dec_a", equal_types=equal_types)

    def test_relates_to_has_no_direction_between_equal_types(self) -> None:
        forth = ids.edge_id("alpha", "dec_a", "relates_to", "dec_b", equal_types=True)
        assert forth == ids.edge_id("alpha", "dec_b", "relates_to", "dec_a", equal_types=True)

    def test_relates_to_has_a_direction_between_different_types(self) -> None:
        forth = ids.edge_id("alpha", "dec_a", "relates_to", "alt_b", equal_types=False)
        assert forth != ids.edge_id("alpha", "alt_b", "relates_to", "dec_a", equal_types=False)


class TestForms:
    @pytest.mark.parametrize(("number", "expected"), [(1, "001"), (42, "042"), (999, "999"), (1000, "1000")])
    def test_candidates_are_numbered_with_at_least_three_digits(self, number: int, expected: str) -> None:
        assert ids.candidate_id(number) == f"cand_{expected}"
        assert ids.edge_candidate_id(number) == f"edge_cand_{expected}"

    @pytest.mark.parametrize("text", ["a", "alpha", "0", "team_7", "a" * 64])
    def test_a_board_id_is_lower_case_digits_and_underscores(self, text: str) -> None:
        assert ids.BOARD_ID.fullmatch(text)

    @pytest.mark.parametrize("text", ["", "_a", "Alpha", "a-b", "a b", "é", "a" * 65, "a\n"])
    def test_anything_else_is_no_board_id(self, text: str) -> None:
        assert not ids.BOARD_ID.fullmatch(text)

    @pytest.mark.parametrize("text", ["dec_1", "dec_8f3a", "x_" + "A" * 64])
    def test_a_node_id_of_any_origin_is_taken(self, text: str) -> None:
        assert ids.NODE_ID.fullmatch(text)

    @pytest.mark.parametrize("text", ["dec", "dec_", "_1", "dec-1", "dec_1-2", "Dec_1", "dec_" + "a" * 65, "dec_1\n", "dec_é"])
    def test_no_node_id_has_a_hyphen_or_lacks_a_part(self, text: str) -> None:
        assert not ids.NODE_ID.fullmatch(text)

    @pytest.mark.parametrize("text", ["a", "spec", "pull_request2", "a" * 32])
    def test_a_source_type_is_lower_case(self, text: str) -> None:
        assert ids.SOURCE_TYPE.fullmatch(text)

    @pytest.mark.parametrize("text", ["", "1a", "Spec", "a-b", "a" * 33])
    def test_anything_else_is_no_source_type(self, text: str) -> None:
        assert not ids.SOURCE_TYPE.fullmatch(text)

    @pytest.mark.parametrize("text", ["sha256:" + "0" * 63, "sha256:" + "G" * 64, "SHA256:" + "0" * 64, "0" * 64, "sha256:" + "A" * 64])
    def test_a_content_hash_has_its_prefix_and_64_lower_case_hex_digits(self, text: str) -> None:
        assert ids.CONTENT_HASH.fullmatch("sha256:" + "0a" * 32)
        assert not ids.CONTENT_HASH.fullmatch(text)

    def test_every_node_type_is_one_of_the_schema(self) -> None:
        assert get_args(NodeType) == NODE_TYPES


class TestUlids:
    def test_it_is_the_instant_and_the_randomness_in_crockford_base32(self) -> None:
        assert ids.ulid(0, bytes(10)) == "0" * 26
        assert ids.ulid(2**48 - 1, b"\xff" * 10) == "7" + "Z" * 25
        assert ids.ulid(1_469_918_176_385, bytes(10)) == "01ARYZ6S41" + "0" * 16

    def test_later_ones_sort_after_earlier_ones(self) -> None:
        assert ids.ulid(1_000, b"\xff" * 10) < ids.ulid(1_001, bytes(10))

    def test_it_makes_a_session_id(self) -> None:
        assert ids.SESSION_ID.fullmatch("kgs_" + ids.ulid(1_778_171_400_000, bytes(range(10))))
        assert not ids.SESSION_ID.fullmatch("kgs_" + "I" * 26)
