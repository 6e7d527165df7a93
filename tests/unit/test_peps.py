"""A decision history in a file: how its lines become nodes, edges and sessions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulse_kg.cli.peps import Document, Link, batches, closing_links, links_of, read_documents
from pulse_kg.cli.story import STORY, Read, documents, text_of
from pulse_kg.errors import InvalidArgument


def line(pep: int, **changes: Any) -> dict[str, Any]:
    day = {"created": f"20{pep:02d}-01-01T00:00:00Z"} if pep < 100 else {"created": "2000-01-01T00:00:00Z"}
    return {"pep": pep, "title": f"Title {pep}", "status": "Final", "abstract": f"Text {pep}.", "rejected": [], **day, **changes}


def idea(title: str, reason: str = "Too slow.") -> dict[str, str]:
    return {"title": title, "reason_discarded": reason}


def read(*lines: dict[str, Any]) -> list[Document]:
    return read_documents(b"\n".join(json.dumps(x).encode() for x in lines))


def problems(data: bytes) -> dict[str, str]:
    with pytest.raises(InvalidArgument) as refused:
        read_documents(data)
    return {p.path: p.problem for p in refused.value.problems}


def peps(batch: Any) -> list[int]:
    return [d.pep for d in batch.documents]


class TestNodes:
    def test_a_document_becomes_a_decision_with_its_abstract_date_and_place(self) -> None:
        (document,) = read(line(8))
        assert document.decision() == {
            "node_type": "Decision",
            "title": "Title 8",
            "body": "Text 8.",
            "attributes": {"decided_at": "2008-01-01T00:00:00Z", "status": "active"},
            "source_ref": {"spec_id": "pep-0008", "section": "decision"},
        }

    @pytest.mark.parametrize(
        ("status", "expected"),
        [("Rejected", "revoked"), ("Withdrawn", "revoked"), ("Superseded", "active"), ("Draft", "active"), ("Deferred", "active")],
    )
    def test_what_was_rejected_or_withdrawn_is_revoked(self, status: str, expected: str) -> None:
        (document,) = read(line(8, status=status))
        assert document.decision()["attributes"]["status"] == expected

    def test_each_rejected_idea_becomes_an_alternative_with_its_reason_and_a_number(self) -> None:
        (document,) = read(line(8, rejected=[idea("Tabs"), idea("Both", " ")]))
        assert document.alternatives() == [
            {
                "node_type": "Alternative",
                "title": "Tabs",
                "attributes": {"reason_discarded": "Too slow."},
                "source_ref": {"spec_id": "pep-0008", "section": "rejected-1"},
            },
            {"node_type": "Alternative", "title": "Both", "attributes": {}, "source_ref": {"spec_id": "pep-0008", "section": "rejected-2"}},
        ]

    def test_documents_come_by_date_and_then_by_number(self) -> None:
        day = "2001-05-05T00:00:00Z"
        found = read(line(20, created=day), line(3, created="2002-01-01"), line(10, created=day))
        assert [d.pep for d in found] == [10, 20, 3]


class TestBadLines:
    def test_all_bad_lines_are_told_at_once_with_their_numbers(self) -> None:
        good = json.dumps(line(1))
        data = "\n".join([good, "{", "", json.dumps({"pep": "2"}), json.dumps(line(3, created="soon")), good]).encode()
        found = problems(data)
        assert found["line 2"].startswith("is not JSON")
        assert {"line 4: pep", "line 4: title", "line 4: status", "line 4: created"} <= set(found)
        assert "RFC 3339" in found["line 5: created"]
        assert found["line 6"] == "pep 1 is on line 1 already"

    def test_a_node_that_the_tools_would_refuse_is_a_bad_line(self) -> None:
        found = problems(json.dumps(line(1, title="x" * 501, rejected=[idea("a"), idea(" "), idea("b", "y" * 4_001)])).encode())
        assert set(found) == {"line 1: decision.title", "line 1: rejected-2.title", "line 1: rejected-3.attributes.reason_discarded"}

    def test_a_control_character_is_a_bad_line(self) -> None:
        assert "control character" in problems(json.dumps(line(1, abstract="a\u0007b")).encode())["line 1: decision.body"]

    def test_bytes_that_are_no_text_are_a_bad_line(self) -> None:
        assert problems(b'{"title": "\xff"}')["line 1"] == "is not JSON: the bytes are not UTF-8"

    def test_a_file_without_documents_is_refused(self) -> None:
        assert problems(b"\n\n") == {"file": "must hold one JSON object a line"}


class TestLinks:
    def test_both_headers_of_a_supersedence_give_one_edge_from_newer_to_older(self) -> None:
        links, foreign = links_of(read(line(1, superseded_by=[2]), line(2, replaces=[1])))
        assert (links, foreign) == ([Link(2, "supersedes", 1)], [])

    def test_one_header_is_enough(self) -> None:
        assert links_of(read(line(1, superseded_by=[2]), line(2)))[0] == [Link(2, "supersedes", 1)]
        assert links_of(read(line(1), line(2, replaces=[1])))[0] == [Link(2, "supersedes", 1)]

    def test_what_a_document_requires_is_a_dependency(self) -> None:
        assert links_of(read(line(1), line(2, requires=[1])))[0] == [Link(2, "depends_on", 1)]

    def test_an_edge_to_a_document_that_the_file_does_not_have_is_told_apart(self) -> None:
        assert links_of(read(line(1, superseded_by=[9], requires=[7]))) == ([], [Link(9, "supersedes", 1), Link(1, "depends_on", 7)])

    def test_of_contradictory_headers_the_later_one_closes_the_cycle(self) -> None:
        links, _ = links_of(read(line(1, replaces=[2]), line(2, replaces=[3]), line(3, replaces=[1])))
        assert closing_links(links) == {Link(3, "supersedes", 1)}

    def test_a_document_that_supersedes_itself_closes_a_cycle(self) -> None:
        assert closing_links([Link(1, "supersedes", 1)]) == {Link(1, "supersedes", 1)}

    def test_dependencies_close_no_cycle(self) -> None:
        assert not closing_links([Link(1, "depends_on", 2), Link(2, "depends_on", 1)])


class TestBatches:
    def test_a_session_takes_no_more_documents_than_asked(self) -> None:
        found = batches(read(*map(line, range(1, 8))), [], size=3, node_limit=500, edge_limit=1_000)
        assert [peps(b) for b in found] == [[1, 2, 3], [4, 5, 6], [7]]
        assert [b.number for b in found] == [1, 2, 3]

    def test_an_edge_goes_where_its_later_end_is(self) -> None:
        documents = read(line(1, superseded_by=[3]), line(2), line(3), line(4, requires=[2]))
        links, _ = links_of(documents)
        first, second = batches(documents, links, size=2, node_limit=500, edge_limit=1_000)
        assert (first.links, first.earlier) == ((), ())
        assert set(second.links) == {Link(3, "supersedes", 1), Link(4, "depends_on", 2)}
        assert second.earlier == (1, 2)

    def test_no_session_exceeds_the_node_limit_earlier_ends_counted(self) -> None:
        documents = read(line(1), line(2), line(3, requires=[1]), line(4, rejected=[idea("a"), idea("b")]))
        found = batches(documents, links_of(documents)[0], size=40, node_limit=3, edge_limit=10)
        assert [peps(b) for b in found] == [[1, 2, 3], [4]]
        found = batches(read(line(1), line(2), line(3, requires=[1])), [Link(3, "depends_on", 1)], size=2, node_limit=2, edge_limit=10)
        assert [peps(b) for b in found] == [[1, 2], [3]]

    def test_no_session_exceeds_the_edge_limit(self) -> None:
        documents = read(line(1, rejected=[idea("a")]), line(2, rejected=[idea("b")]), line(3, rejected=[idea("c")]))
        assert [peps(b) for b in batches(documents, [], size=40, node_limit=500, edge_limit=2)] == [[1, 2], [3]]

    def test_a_document_that_no_session_has_room_for_is_refused_before_anything_is_written(self) -> None:
        with pytest.raises(InvalidArgument) as refused:
            batches(read(line(1), line(2, rejected=[idea("a"), idea("b")])), [], size=40, node_limit=2, edge_limit=10)
        assert [p.path for p in refused.value.problems] == ["pep-0002"]

    def test_the_same_content_has_the_same_hash_and_other_content_another(self) -> None:
        def only(**changes: Any) -> str:
            return batches(read(line(1, **changes)), [], size=9, node_limit=9, edge_limit=9)[0].content_hash

        hashes = [only(), only(), only(abstract="Else."), only(status="Rejected"), only(rejected=[idea("a")])]
        assert hashes[0] == hashes[1]
        assert len(set(hashes)) == 4


class TestSample:
    def test_the_story_reads_every_document_of_the_sample(self) -> None:
        assert {scene.pep for chapter in STORY for scene in chapter.scenes} == set(documents())

    def test_the_story_reads_in_the_order_in_which_the_documents_were_made(self) -> None:
        texts = documents()
        dates = [texts[s.pep].order for c in STORY for s in c.scenes if not (isinstance(s, Read) and s.again)]
        assert dates == sorted(dates)

    def test_the_edges_of_the_story_are_those_of_the_headers_but_for_the_override(self) -> None:
        links, _ = links_of(sorted(documents().values(), key=lambda d: d.order))
        reads = [s for c in STORY for s in c.scenes if isinstance(s, Read)]
        stated = {Link(a, "supersedes", b) for s in reads for a, b in s.supersedes}
        stated |= {Link(s.pep, "supersedes", s.by_rule) for s in reads if s.by_rule is not None}
        stated |= {Link(a, "depends_on", b) for s in reads for a, b in s.depends_on}
        assert set(links) - stated == {Link(426, "supersedes", 345)}
        assert stated <= set(links)

    def test_versions_of_one_specification_share_a_reference(self) -> None:
        texts = documents()
        first, second = text_of(texts[241]), text_of(texts[314])
        assert first.nodes[0]["source_ref"] == second.nodes[0]["source_ref"]
        assert (first.source[2], second.source[2]) == (1, 2)
