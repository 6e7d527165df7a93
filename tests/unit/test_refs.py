"""Source references: their canonical text and back."""

from __future__ import annotations

import pytest

from pulse_kg.domain.refs import Artifact, SourceRef, artifact_of, parse_ref, stable_part


@pytest.mark.parametrize(
    ("ref", "canonical"),
    [
        (SourceRef(Artifact("spec", "spec_007"), "retry-strategy"), "spec:spec_007#retry-strategy"),
        (SourceRef(Artifact("spec", "spec_007")), "spec:spec_007"),
        (SourceRef(Artifact("spec", "spec_007"), "fr:3"), "spec:spec_007#fr%3A3"),
        (SourceRef(Artifact("card", "a:b#c%d")), "card:a%3Ab%23c%25d"),
        (SourceRef(Artifact("card", "a"), "x#y:z%"), "card:a#x%23y%3Az%25"),
        (SourceRef(Artifact("card", "%3A"), "%23"), "card:%253A#%2523"),
        (SourceRef(Artifact("pull_request", "äöü 7/8"), "§ 2, café"), "pull_request:äöü 7/8#§ 2, café"),
    ],
)
def test_canonical_text_escapes_its_separators_and_is_read_back(ref: SourceRef, canonical: str) -> None:
    assert ref.canonical == canonical
    assert parse_ref(canonical) == ref


@pytest.mark.parametrize(
    "text",
    [
        "",
        "spec",
        "spec:",
        ":spec_007",
        "#section",
        "spec#section",
        "spec:#section",
        "spec:spec_007#",
        "spec:a:b",
        "spec:a#b#c",
        "spec:a#b:c",
        "spec:a%",
        "spec:%41",
        "spec:a%3a",
        "spec:%ff",
    ],
)
def test_text_that_is_not_canonical_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a canonical source reference"):
        parse_ref(text)


def test_only_a_reference_with_a_section_can_identify_a_node() -> None:
    assert SourceRef(Artifact("spec", "a")).stable is None
    assert SourceRef(Artifact("spec", "a"), "x").stable == "spec:a#x"
    assert stable_part("spec:a") is None
    assert stable_part("spec:a#x") == "spec:a#x"


def test_a_hash_sign_in_an_id_makes_no_section() -> None:
    ref = SourceRef(Artifact("spec", "a#b"))
    assert stable_part(ref.canonical) is None
    assert artifact_of(ref.canonical) == ref.artifact.canonical


def test_the_artifact_of_a_reference_is_its_first_part() -> None:
    assert artifact_of("spec:spec_007#retry") == artifact_of("spec:spec_007") == "spec:spec_007"
