"""The settings: the one place that reads the environment.

Each setting is declared once, on its field; parsing, the checks, the reference page and `pulse-kg health` follow from that.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

from pulse_kg.errors import InvalidArgument, Problem

PREFIX: Final = "PULSE_KG_"
API_KEY_VARIABLE: Final = "PULSE_KG_API_KEY"
"""A caller's key: read by `call` and `serve --stdio`, and no setting, so that no listing of settings can show it."""

_NOT_SETTINGS: Final[Mapping[str, str]] = {
    API_KEY_VARIABLE: "the caller's key, for `pulse-kg call` and `pulse-kg serve --stdio`; `--key-file` wins over it",
    "PULSE_KG_GREMLIN_URL": "`--store aws`: the graph's endpoint",
    "PULSE_KG_OPENSEARCH_URL": "`--store aws`: the vector index's endpoint",
    "PULSE_KG_TABLE_PREFIX": "`--store aws`: what the tables' names begin with",
    "PULSE_KG_QUEUE_URL": "`--store aws`: the outbox queue",
    "PULSE_KG_SIGNED": "`--store aws`: true where graph and vector index want requests that are signed with the AWS credentials",
    "PULSE_KG_GRAPH_IDS": "`--store aws`: `property`, or `supplied` for a graph that takes the ids of vertices from us, as Neptune does",
    "PULSE_KG_EMBED_FUNCTION": "`PULSE_KG_EMBEDDER=lambda`: the name of the embedding function",
    "PULSE_KG_EMBED_MODEL": "`PULSE_KG_EMBEDDER=lambda`: its model's id, dimension and digest, parted by spaces; else it is asked for them",
    "PULSE_KG_FUNCTION_PREFIX": "the MCP function: what the names of the tools' functions begin with; unset, it runs the tools itself",
    "PULSE_KG_BOUND_KEY_PARAMETER": "a tool behind an AgentCore Gateway: the SSM parameter with the key of the agent it is bound to",
}
"""Variables with the prefix that are read elsewhere, each with its meaning."""

_SQLITE: Final = "sqlite:"
_NO_ORIGIN: Final = "none"
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]{1,9}(\.[0-9]{0,18})?|\.[0-9]{1,18})")

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
EmbedderName = Literal["minilm", "hashing", "lambda"]
_T = TypeVar("_T")


class SettingsError(InvalidArgument):
    """One or more environment variables can't be used; the message and `problems` name all of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        listed = "; ".join(f"{p.path} {p.problem}" for p in problems)
        super().__init__(f"The settings can't be used: {listed}.", problems)


@dataclass(frozen=True)
class _Kind:
    """How a value is read.

    Attributes:
        wanted: What a value must be, after "must be".
        read: The value of a text; None where it is none of them.
        shown: The text of a value, the inverse of `read`.
    """

    wanted: str
    read: Callable[[str], Any]
    shown: Callable[[Any], str] = str


@dataclass(frozen=True)
class Declaration:
    """A setting as it is declared.

    Attributes:
        name: The field of `Settings`.
        variable: The environment variable.
        kind: How its value is read.
        default: The default as a text.
        meaning: What it does, for a reader.
    """

    name: str
    variable: str
    kind: _Kind
    default: str
    meaning: str


def _whole(low: int, high: int) -> _Kind:
    def read(text: str) -> int | None:
        return int(text) if _WHOLE.fullmatch(text) and low <= int(text) <= high else None

    return _Kind(f"a whole number from {low} to {high}", read)


def _share() -> _Kind:
    def read(text: str) -> float | None:
        return float(text) if _DECIMAL.fullmatch(text) and 0 <= float(text) <= 1 else None

    return _Kind("a number from 0 to 1", read)


def _word(*words: str, fold: Callable[[str], str]) -> _Kind:
    return _Kind("one of " + ", ".join(words), lambda text: fold(text) if fold(text) in words else None)


def _read_store(text: str) -> str | None:
    path = text.removeprefix(_SQLITE).strip()
    if text == "aws" or path in (text, ""):
        return text if text == "aws" else None
    # A shell leaves the ~ of "sqlite:~/file" as it is.
    return f"{_SQLITE}{Path(path).expanduser()}" if path.startswith("~") else f"{_SQLITE}{path}"


def _read_origins(text: str) -> tuple[str, ...] | None:
    if text.lower() == _NO_ORIGIN:
        return ()
    origins = tuple(text.replace(",", " ").split())
    return origins if origins and all(map(_is_origin, origins)) else None


def _is_origin(text: str) -> bool:
    if text == "*":
        return True
    try:
        parts = urlsplit(text.removesuffix(":*"))
        parts.port  # noqa: B018 - a port out of range is found when it is asked for
    except ValueError:
        return False
    return bool(parts.scheme and parts.hostname) and not (parts.path or parts.query or parts.fragment or parts.username)


_STORE: Final = _Kind("sqlite:PATH or aws", _read_store)
_PATH: Final = _Kind("a folder", Path)
_ORIGINS: Final = _Kind(
    f"origins such as https://app.example.org, separated by commas (:* at the end for any port), * for all, or {_NO_ORIGIN}",
    _read_origins,
    lambda origins: ",".join(origins) or _NO_ORIGIN,
)


def _setting(default: _T, kind: _Kind, meaning: str) -> _T:
    declared: Any = field(default=default, metadata={"kind": kind, "meaning": meaning})
    return declared  # type: ignore[no-any-return]


def default_model_dir() -> Path:
    """Where `make setup` builds the embedding model: inside the environment that runs."""
    return Path(sys.prefix) / "share" / "pulse-kg" / "model"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings; each field's meaning stands in its declaration and in docs/settings.md."""

    store: str = _setting("sqlite:./pulse-kg.db", _STORE, "Where everything is kept; `pulse-kg --store` wins over it.")
    session_ttl_seconds: int = _setting(
        3_600, _whole(1, 604_800), "How long a session stays open, from its begin; activity does not prolong it."
    )
    consolidations_per_minute: int = _setting(60, _whole(1, 100_000), "Sessions that one agent may begin in a minute.")
    cypher_per_minute: int = _setting(30, _whole(1, 100_000), "Calls of query_cypher that one agent may make in a minute.")
    update_threshold: float = _setting(0.95, _share(), "Similarity from which a live match is the same statement (rule 4).")
    supersede_threshold: float = _setting(
        0.85, _share(), "Similarity from which a Decision or Constraint of the same artifact replaces a live match (rule 5)."
    )
    similar_threshold: float = _setting(
        0.70, _share(), "Similarity from which a match is named as a possible duplicate (rule 6), or confirms a stable reference (rule 3)."
    )
    max_open_sessions: int = _setting(50, _whole(1, 10_000), "Open sessions of one agent.")
    max_node_candidates: int = _setting(500, _whole(1, 10_000), "Node candidates of one session.")
    max_edge_candidates: int = _setting(1_000, _whole(1, 10_000), "Edge candidates of one session.")
    max_body_bytes: int = _setting(32_768, _whole(1, 262_144), "Bytes of a node's body.")
    max_candidate_bytes: int = _setting(49_152, _whole(1, 262_144), "Bytes of one candidate, encoded as JSON.")
    max_response_bytes: int = _setting(4_000_000, _whole(1_024, 6_000_000), "Bytes of a tool's answer.")
    allowed_origins: tuple[str, ...] = _setting(
        (
            "http://localhost:*",
            "https://localhost:*",
            "http://127.0.0.1:*",
            "https://127.0.0.1:*",
            "http://[::1]:*",
            "https://[::1]:*",
        ),
        _ORIGINS,
        "Pages in a browser that may call the server. Programs are not browsers and need no entry.",
    )
    embedder: EmbedderName = _setting(  # noqa: RUF009 - a frozen word, as all defaults here
        "minilm",
        _word("minilm", "hashing", "lambda", fold=str.lower),
        "What makes the vectors: all-MiniLM-L6-v2, here or in a function of AWS Lambda (`lambda`), or for tests hashed words that know "
        "nothing of meaning. A store keeps to one.",
    )
    embedder_threads: int = _setting(2, _whole(1, 64), "Threads of the embedding model.")
    model_dir: Path = field(
        default_factory=default_model_dir, metadata={"kind": _PATH, "meaning": "The folder of the embedding model, built by `make setup`."}
    )
    log_level: LogLevel = _setting(  # noqa: RUF009
        "WARNING",
        _word("DEBUG", "INFO", "WARNING", "ERROR", fold=str.upper),
        "What is logged, to standard error. DEBUG shows the traceback of a failure.",
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Reads the settings; a variable that is not set has its default.

        Args:
            environment: Variables by name, such as ``os.environ``; those without the prefix are passed over.

        Raises:
            SettingsError: Values that can't be used and variables that nobody knows, all of them together.
        """
        values: dict[str, Any] = {}
        problems: list[Problem] = []
        for declared in declarations():
            text = environment.get(declared.variable)
            if text is None:
                continue
            value = declared.kind.read(text.strip()) if text.strip() else None
            if value is None:
                problems.append(Problem(declared.variable, _fault(declared, text)))
            else:
                values[declared.name] = value
        problems += [Problem(name, _unknown(name)) for name in sorted(environment) if name.startswith(PREFIX) and name not in _known()]
        settings = cls(**values)
        # Only what could be read is compared, or one wrong number would be told of twice.
        problems += [] if problems else settings._contradictions()
        if problems:
            raise SettingsError(problems)
        return settings

    @property
    def sqlite_path(self) -> Path | None:
        """The file of the embedded store; None for `aws`."""
        return Path(self.store.removeprefix(_SQLITE)) if self.store.startswith(_SQLITE) else None

    def as_public_dict(self) -> dict[str, Any]:
        """The settings as JSON, by field name. None of them is a secret."""
        values = {declared.name: getattr(self, declared.name) for declared in declarations()}
        return {name: str(v) if isinstance(v, Path) else list(v) if isinstance(v, tuple) else v for name, v in values.items()}

    def _contradictions(self) -> list[Problem]:
        problems = []
        for low, high in (("similar_threshold", "supersede_threshold"), ("supersede_threshold", "update_threshold")):
            if getattr(self, low) > getattr(self, high):
                problem = f"({getattr(self, low)}) must not be above {_variable(high)} ({getattr(self, high)})"
                problems.append(Problem(_variable(low), problem))
        return problems


def parse_store(text: str) -> str:
    """The address of a store, checked.

    Raises:
        ValueError: It is neither ``sqlite:PATH`` nor ``aws``.
    """
    store = _read_store(text.strip())
    if store is None:
        raise ValueError(f"must be {_STORE.wanted}, not '{text}'")
    return store


def declarations() -> tuple[Declaration, ...]:
    """Every setting, in the order of the reference page."""
    return tuple(
        Declaration(
            name=f.name,
            variable=_variable(f.name),
            kind=f.metadata["kind"],
            default="<sys.prefix>/share/pulse-kg/model" if f.name == "model_dir" else f.metadata["kind"].shown(f.default),
            meaning=f.metadata["meaning"],
        )
        for f in fields(Settings)
    )


def reference_page() -> str:
    """The text of docs/settings.md."""
    lines = [
        "# Settings",
        "",
        "Environment variables, read once at the start; `pulse-kg health` shows what is in force. A value that can't be used, and a",
        f"`{PREFIX}…` variable that is not listed here, stop the start with a message that names all of them.",
        "",
        "<!-- Made from settings.py: python -m pulse_kg.settings docs/settings.md -->",
        "",
        "| variable | value | default | meaning |",
        "|---|---|---|---|",
        *(f"| `{d.variable}` | {d.kind.wanted} | `{d.default}` | {d.meaning} |" for d in declarations()),
        "",
        "The three thresholds must be in order: similar ≤ supersede ≤ update.",
        "",
        "Read elsewhere, and never shown:",
        "",
        "| variable | meaning |",
        "|---|---|",
        *(f"| `{name}` | {meaning} |" for name, meaning in _NOT_SETTINGS.items()),
    ]
    return "\n".join(lines) + "\n"


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _known() -> frozenset[str]:
    return frozenset(d.variable for d in declarations()) | frozenset(_NOT_SETTINGS)


def _fault(declared: Declaration, text: str) -> str:
    if not text.strip():
        return f"is empty (leave it out for the default, {declared.default})"
    return f"must be {declared.kind.wanted}, not '{text}'"


def _unknown(name: str) -> str:
    from difflib import get_close_matches  # only where something is wrong already

    near = get_close_matches(name, sorted(_known()), n=1, cutoff=0.8)
    return "is no setting " + (f"(nearest: {near[0]})" if near else "(docs/settings.md lists them)")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference_page(), encoding="utf-8")
