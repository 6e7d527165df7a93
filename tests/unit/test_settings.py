"""Settings: what the environment may say, and what becomes of what it may not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pulse_kg.mcp.headers import DEFAULT_ALLOWED_ORIGINS, is_allowed_origin
from pulse_kg.settings import Settings, SettingsError, declarations, default_model_dir, parse_store, reference_page

ROOT = Path(__file__).parents[2]


def read(**variables: str) -> Settings:
    return Settings.from_environment({f"PULSE_KG_{name}": value for name, value in variables.items()})


def faults(**variables: str) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        read(**variables)
    return {p.path: p.problem for p in caught.value.problems}


def test_without_variables_the_contract_s_defaults_are_in_force() -> None:
    settings = Settings.from_environment({})
    assert settings == Settings()
    assert settings.store == "sqlite:./pulse-kg.db"
    assert settings.sqlite_path == Path("pulse-kg.db")
    assert (settings.session_ttl_seconds, settings.consolidations_per_minute, settings.cypher_per_minute) == (3600, 60, 30)
    assert (settings.update_threshold, settings.supersede_threshold, settings.similar_threshold) == (0.95, 0.85, 0.70)
    assert (settings.max_open_sessions, settings.max_node_candidates, settings.max_edge_candidates) == (50, 500, 1000)
    assert (settings.max_body_bytes, settings.max_candidate_bytes, settings.max_response_bytes) == (32 * 1024, 48 * 1024, 4_000_000)
    assert settings.model_dir == default_model_dir() == Path(sys.prefix) / "share/pulse-kg/model"
    assert settings.embedder == "minilm"


def test_the_default_origins_are_those_of_the_http_edge() -> None:
    assert Settings().allowed_origins == DEFAULT_ALLOWED_ORIGINS


@pytest.mark.parametrize("declared", declarations(), ids=lambda d: d.variable)
def test_every_default_can_be_written_as_a_variable_and_means_the_same(declared: object) -> None:
    name, kind = declared.name, declared.kind  # type: ignore[attr-defined]
    default = getattr(Settings(), name)
    assert getattr(read(**{name.upper(): kind.shown(default)}), name) == default


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("STORE", "sqlite:/data/team.db", "sqlite:/data/team.db"),
        ("STORE", "aws", "aws"),
        ("STORE", " sqlite:a.db ", "sqlite:a.db"),
        ("SESSION_TTL_SECONDS", "60", 60),
        ("UPDATE_THRESHOLD", "1", 1.0),
        ("SIMILAR_THRESHOLD", ".5", 0.5),
        ("LOG_LEVEL", "debug", "DEBUG"),
        ("EMBEDDER", "Hashing", "hashing"),
        ("EMBEDDER_THREADS", "4", 4),
        ("MODEL_DIR", "/opt/model", Path("/opt/model")),
        ("ALLOWED_ORIGINS", "https://a.example, http://b.example:8080", ("https://a.example", "http://b.example:8080")),
        ("ALLOWED_ORIGINS", "http://localhost:*", ("http://localhost:*",)),
        ("ALLOWED_ORIGINS", "*", ("*",)),
        ("ALLOWED_ORIGINS", "none", ()),
    ],
)
def test_a_variable_wins_over_the_default(name: str, text: str, value: object) -> None:
    assert getattr(read(**{name: text}), name.lower()) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("STORE", "postgres://x"),
        ("STORE", "sqlite:"),
        ("STORE", "pulse-kg.db"),
        ("SESSION_TTL_SECONDS", "0"),
        ("SESSION_TTL_SECONDS", "1h"),
        ("SESSION_TTL_SECONDS", "1_000"),
        ("SESSION_TTL_SECONDS", "60.0"),
        ("SESSION_TTL_SECONDS", "٦٠"),
        ("CONSOLIDATIONS_PER_MINUTE", "-1"),
        ("CYPHER_PER_MINUTE", ""),
        ("UPDATE_THRESHOLD", "1.01"),
        ("UPDATE_THRESHOLD", "nan"),
        ("SUPERSEDE_THRESHOLD", "-0.1"),
        ("SIMILAR_THRESHOLD", "1e-1"),
        ("MODEL_DIR", "  "),
        ("LOG_LEVEL", "LOUD"),
        ("EMBEDDER", "ada-002"),
        ("EMBEDDER_THREADS", "65"),
        ("ALLOWED_ORIGINS", "example.org"),
        ("ALLOWED_ORIGINS", "https://a.example/path"),
        ("ALLOWED_ORIGINS", "https://a.example:99999"),
        ("MAX_OPEN_SESSIONS", "0"),
        ("MAX_NODE_CANDIDATES", "0"),
        ("MAX_EDGE_CANDIDATES", "many"),
        ("MAX_BODY_BYTES", "0"),
        ("MAX_CANDIDATE_BYTES", "48 KiB"),
        ("MAX_RESPONSE_BYTES", "7000000"),
    ],
)
def test_a_bad_value_is_refused_with_the_variable_s_name(name: str, text: str) -> None:
    assert list(faults(**{name: text})) == [f"PULSE_KG_{name}"]


def test_all_bad_values_are_told_together_in_the_message_as_well() -> None:
    with pytest.raises(SettingsError) as caught:
        read(SESSION_TTL_SECONDS="x", LOG_LEVEL="LOUD", TYPO="1")
    assert [p.path for p in caught.value.problems] == ["PULSE_KG_SESSION_TTL_SECONDS", "PULSE_KG_LOG_LEVEL", "PULSE_KG_TYPO"]
    assert all(p.path in str(caught.value) for p in caught.value.problems)


def test_a_misspelt_variable_is_named_with_the_nearest_one() -> None:
    assert "PULSE_KG_SESSION_TTL_SECONDS" in faults(SESSION_TTL_SECOND="60")["PULSE_KG_SESSION_TTL_SECOND"]


def test_other_programs_variables_and_the_key_are_passed_over() -> None:
    environment = {"HOME": "/root", "PULSE": "1", "PULSE_KG_API_KEY": "pk_x", "PULSE_KG_GREMLIN_URL": "ws://localhost:8182/gremlin"}
    assert Settings.from_environment(environment) == Settings()


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [(("0.3", "0.2", "0.4"), "SIMILAR", "SUPERSEDE"), (("0.1", "0.3", "0.2"), "SUPERSEDE", "UPDATE")],
    ids=["similar above supersede", "supersede above update"],
)
def test_thresholds_must_be_in_order(values: tuple[str, str, str], low: str, high: str) -> None:
    similar, supersede, update = values
    problems = faults(SIMILAR_THRESHOLD=similar, SUPERSEDE_THRESHOLD=supersede, UPDATE_THRESHOLD=update)
    assert list(problems) == [f"PULSE_KG_{low}_THRESHOLD"]
    assert f"PULSE_KG_{high}_THRESHOLD" in problems[f"PULSE_KG_{low}_THRESHOLD"]


def test_equal_thresholds_are_in_order() -> None:
    assert read(SIMILAR_THRESHOLD="0.9", SUPERSEDE_THRESHOLD="0.9", UPDATE_THRESHOLD="0.9").update_threshold == 0.9


def test_a_home_directory_is_expanded_because_shells_leave_it() -> None:
    assert read(STORE="sqlite:~/kg.db").sqlite_path == Path.home() / "kg.db"


def test_aws_has_no_file() -> None:
    assert read(STORE="aws").sqlite_path is None


def test_a_store_s_address_is_checked_for_the_command_line_as_well() -> None:
    assert parse_store("sqlite:x.db") == "sqlite:x.db"
    with pytest.raises(ValueError, match="sqlite:PATH or aws"):
        parse_store("x.db")


def test_the_public_form_is_plain_json_of_every_setting() -> None:
    shown = Settings().as_public_dict()
    assert list(shown) == [d.name for d in declarations()]
    assert all(isinstance(value, str | int | float | list) for value in shown.values())


def test_allowed_origins_mean_what_the_http_edge_makes_of_them() -> None:
    assert is_allowed_origin("https://a.example:8443", read(ALLOWED_ORIGINS="https://a.example:*").allowed_origins)
    assert not is_allowed_origin("http://localhost", read(ALLOWED_ORIGINS="none").allowed_origins)


def test_the_reference_page_is_up_to_date() -> None:
    page = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    assert page == reference_page(), "run: python -m pulse_kg.settings docs/settings.md"
