"""Where the served stores are: variables of the environment, and what `pulse-kg up` wrote for those that are not set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulse_kg.errors import StoreUnavailable

LOCAL_FILE: Final = Path(".local") / "stack.env"
_CHECKOUT_DEPTH: Final = 4  # pulse_kg, python, core, layers
_NEEDED: Final = ("PULSE_KG_GREMLIN_URL", "PULSE_KG_OPENSEARCH_URL", "PULSE_KG_TABLE_PREFIX")
ADDRESSES: Final = (*_NEEDED, "PULSE_KG_QUEUE_URL", "PULSE_KG_GRAPH_IDS", "PULSE_KG_SIGNED")
"""The variables of ours that are read here, beside the standard ones of AWS."""


@dataclass(frozen=True)
class Endpoints:
    """The served stores.

    Attributes:
        gremlin_url: The graph.
        opensearch_url: The vector index.
        table_prefix: What the names of tables and of the index begin with.
        queue_url: Where events go; None where there is no queue.
        aws_url: Where the AWS interfaces answer; None for AWS itself.
        region: The AWS region, or None for the machine's.
        access_key: The credentials' public part, or None for the machine's.
        secret_key: The credentials' secret.
        graph_ids: How the graph finds a vertex: by its own property, or by the id that Neptune lets us give.
        signed: Whether requests to graph and index are signed with the AWS credentials.
    """

    gremlin_url: str
    opensearch_url: str
    table_prefix: str
    queue_url: str | None = None
    aws_url: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    graph_ids: str = "property"
    signed: bool = False


def endpoints_of(environment: Mapping[str, str]) -> Endpoints:
    """The endpoints that an environment names.

    Args:
        environment: Variables by name. Any that is not set is read from `LOCAL_FILE`, in the working folder or in the checkout.

    Raises:
        StoreUnavailable: One is missing.
    """
    # A function on AWS has its own credentials under other names, and no such file.
    known = {**_local(), **{name: value for name, value in environment.items() if value}}
    missing = [name for name in _NEEDED if not known.get(name)]
    if missing:
        raise StoreUnavailable(
            "aws",
            f"--store aws needs {' and '.join(missing)}. Start the local servers with 'pulse-kg up', which says where they are, "
            "or set the variables of your deployment.",
        )
    return Endpoints(
        gremlin_url=known["PULSE_KG_GREMLIN_URL"],
        opensearch_url=known["PULSE_KG_OPENSEARCH_URL"],
        table_prefix=known["PULSE_KG_TABLE_PREFIX"],
        queue_url=known.get("PULSE_KG_QUEUE_URL"),
        aws_url=known.get("AWS_ENDPOINT_URL"),
        region=known.get("AWS_REGION") or known.get("AWS_DEFAULT_REGION"),
        access_key=None if "AWS_SESSION_TOKEN" in known else known.get("AWS_ACCESS_KEY_ID"),
        secret_key=None if "AWS_SESSION_TOKEN" in known else known.get("AWS_SECRET_ACCESS_KEY"),
        graph_ids=known.get("PULSE_KG_GRAPH_IDS", "property"),
        signed=known.get("PULSE_KG_SIGNED", "").lower() in ("1", "true", "yes"),
    )


def _local() -> dict[str, str]:
    above = Path(__file__).resolve().parents
    for folder in (Path.cwd(), above[min(_CHECKOUT_DEPTH, len(above) - 1)]):
        try:
            text = (folder / LOCAL_FILE).read_text(encoding="utf-8")
        except OSError:
            continue
        lines = (line.partition("=") for line in text.splitlines() if line and not line.startswith("#"))
        return {name: value for name, _, value in lines}
    return {}
