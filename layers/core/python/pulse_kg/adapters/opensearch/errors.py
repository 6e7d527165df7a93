"""OpenSearch's refusals in our words; the only module that reads its error types."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from pulse_kg.errors import StoreUnavailable

STORE: Final = "vectors"
"""How an error names this store."""

_BUSY_STATUSES: Final = frozenset({429, 502, 503, 504})
_FORBIDDEN: Final = frozenset({401, 403})
_TOO_LARGE: Final = 413
_NOT_FOUND: Final = 404
_FAULTS: Final = range(400, 500)


class Busy(StoreUnavailable):
    """The same request may succeed in a moment, so that it is worth another try inside the call."""

    def __init__(self) -> None:
        super().__init__(STORE)


class IndexRefused(StoreUnavailable):
    """The index can't be used as it is, now or later: a person has to do something."""

    retryable: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(STORE, message)


def unavailable() -> StoreUnavailable:
    """The index can't be used right now."""
    return StoreUnavailable(STORE)


def missing() -> IndexRefused:
    """There is no index of that name."""
    return IndexRefused("The vector index does not exist yet. Set the store up first.")


def no_knn() -> IndexRefused:
    """The server lacks the plugin."""
    return IndexRefused("The vector index's server has no k-NN. Use an OpenSearch server or a managed domain that has the k-NN plugin.")


def no_credentials() -> IndexRefused:
    """Requests are to be signed, and there is nothing to sign them with."""
    return IndexRefused("The vector index wants signed requests, and there are no AWS credentials or no region. Give this program both.")


def serverless() -> IndexRefused:
    """A collection instead of a server."""
    return IndexRefused(
        "The vector index is a serverless collection, which takes no document ids or versions. Use an OpenSearch domain or server."
    )


def damaged() -> IndexRefused:
    """A vector that a commit changes is not there."""
    return IndexRefused(
        "The vector index lacks a vector that must be there. Run 'pulse-kg verify', and make the index anew with 'pulse-kg rebuild'."
    )


def foreign() -> IndexRefused:
    """A search of one board was answered with something of another; nothing of it was shown."""
    return IndexRefused(
        "The vector index does not keep boards apart, and its answer was thrown away. Check the index with 'pulse-kg verify'."
    )


def kind_of(error: Any) -> str:
    """The type of an error as it stands in an answer; empty where there is none."""
    kind = error.get("type") if isinstance(error, dict) else error
    return kind if isinstance(kind, str) else ""


def refusal(status: object, error: Any = None) -> StoreUnavailable:
    """What an error means for the caller.

    Args:
        status: The HTTP status of an answer, or of one item in it.
        error: The `error` of the answer: an object with a `type`, or the type.
    """
    kind = kind_of(error)
    if status in _BUSY_STATUSES:
        return Busy()
    if kind == "cluster_block_exception":
        return StoreUnavailable(
            STORE,
            "The vector index takes no writes right now: it is being rebuilt, or its disk is full. Try the same call again in a moment.",
        )
    if status in _FORBIDDEN:
        return IndexRefused("The vector index does not let this program in. Check its credentials, and what the index allows them.")
    if kind == "index_not_found_exception":
        return missing()
    if status == _TOO_LARGE:
        return IndexRefused("The vector index does not take requests of this size. Commit fewer nodes at once.")
    if status in _FAULTS and status != _NOT_FOUND:
        return IndexRefused("The vector index does not understand the request: its mapping or version is not the one that is needed.")
    return unavailable()


def translate(error: Any) -> StoreUnavailable:
    """What a driver's error means for the caller.

    Args:
        error: An `opensearchpy.OpenSearchException`.
    """
    import opensearchpy

    if not isinstance(error, opensearchpy.TransportError) or isinstance(error, opensearchpy.ConnectionError):
        return Busy()  # no answer, or one that is no JSON and so of a proxy in between
    return refusal(error.status_code, error.error)
