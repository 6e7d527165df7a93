"""A deployment for a trial in the local emulator of AWS: tables, queue and index of its own, removed at the end."""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from infra.deploy.invoke import function_environment
from infra.deploy.layers import LAYERS, ROOT
from infra.deploy.stack import client_of, deploy_local, url_of

if TYPE_CHECKING:
    from pulse_kg.bootstrap import Container

FOLDER: Final = ROOT / "build" / "trial"
"""Has a copy of the template with layers of this machine, so that what `make build` built for another stays as it is."""

TRIAL_LAYERS: Final = FOLDER / LAYERS.relative_to(ROOT)
STACK: Final = "pulse-kg-trial"
_SECONDS: Final = 60.0


class CallRefused(Exception):
    """A tool was expected to answer and refused; the message is its envelope."""


@dataclass(frozen=True)
class Agent:
    """An agent that may do everything on a board of its own."""

    board: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class Trial:
    """The deployed API.

    Attributes:
        url: What the paths of the API follow.
        queue: Where events go; its URL.
        variables: Where the stores are, as for ``--store aws``; with them a tool's function reaches what the deployed ones reach.
        container: The stores, opened in this process, without a model.
    """

    url: str
    queue: str
    variables: Mapping[str, str]
    container: Container

    def agent(self, name: str) -> Agent:
        """Makes an agent and its board, both of a name that is not taken."""
        return agent_on_a_board(self.container, name)

    def environment(self, function: str) -> dict[str, str]:
        """A function's variables as the template sets them, for running it beside the deployed one.

        Args:
            function: Its folder's name in functions/.
        """
        deployed = client_of("lambda", self.variables).get_function_configuration(FunctionName=f"{STACK}-{function}")
        ours = {**self.variables, **deployed["Environment"]["Variables"]}
        return function_environment(function, ours, stack_file=Path("none"), layers=TRIAL_LAYERS)

    def post(self, path: str, body: object, key: str, **headers: str) -> tuple[int, Any]:
        """Sends JSON; gives status and answer."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"Content-Type": "application/json", "Authorization": f"Bearer {key}", **named}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), sent, method="POST")  # noqa: S310 - our own URL
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def call(self, tool: str, arguments: Mapping[str, Any], key: str) -> Any:
        """Calls a tool on its route.

        Raises:
            CallRefused: It does not answer 200.
        """
        status, answer = self.post(f"/tools/{tool}", arguments, key)
        if status != 200:  # noqa: PLR2004 - OK
            raise CallRefused(f"{tool}: {answer}")
        return answer


def agent_on_a_board(stores: Container, name: str) -> Agent:
    """Makes an agent and its board, both of a name that is not taken."""
    from pulse_kg.usecases.boards import create_board
    from pulse_kg.usecases.identity import create_agent

    now = stores.clock.now()
    create_board(name, None, boards=stores.boards, now=now)
    issued = create_agent(name, "Full Control", [name], (), identity=stores.identity, boards=stores.boards, ids=stores.ids, now=now)
    return Agent(name, issued.api_key)


@contextmanager
def trial(servers: Mapping[str, str], *, folder: Path = FOLDER) -> Iterator[Trial]:
    """Deploys the template of this checkout, and takes it away at the end.

    Args:
        servers: Where the local servers are, as in ``stack.env``.
        folder: Gets what is built.

    Raises:
        SystemExit: A step of the deployment failed.
    """
    from pulse_kg.adapters.embedding.hashing import HashingEmbedder
    from pulse_kg.bootstrap import open_container
    from pulse_kg.settings import Settings

    prefix = f"trial_{time.time_ns()}_"
    variables = {**servers, "PULSE_KG_TABLE_PREFIX": prefix}
    copy_sources(folder)
    cloud = client_of("cloudformation", variables)
    cloud.delete_stack(StackName=STACK)  # of a trial that was broken off
    outputs = deploy_local(variables, stack=STACK, folder=folder, quiet=True)
    variables |= {"PULSE_KG_QUEUE_URL": outputs["EventsQueueUrl"]}
    container = open_container(Settings(store="aws"), embedder=HashingEmbedder(), environment=variables)
    url = url_of(variables["AWS_ENDPOINT_URL"], outputs["ApiId"]).removesuffix("/mcp")
    try:
        yield Trial(url, outputs["EventsQueueUrl"], variables, container)
    finally:
        container.close()
        cloud.delete_stack(StackName=STACK)
        _remove_stores(prefix, variables)


def copy_sources(folder: Path = FOLDER) -> None:
    """Brings template and functions to where they are built."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "template.yaml", folder)
    shutil.rmtree(folder / "functions", ignore_errors=True)
    shutil.copytree(ROOT / "functions", folder / "functions", ignore=shutil.ignore_patterns("__pycache__"))


def _remove_stores(prefix: str, variables: Mapping[str, str]) -> None:
    """Removes what a stack leaves behind."""
    from pulse_kg.adapters.dynamodb.tables import TABLES

    dynamo = client_of("dynamodb", variables)
    for table in TABLES:
        with suppress(dynamo.exceptions.ResourceNotFoundException):
            dynamo.delete_table(TableName=prefix + table.name)
    index = urllib.request.Request(f"{variables['PULSE_KG_OPENSEARCH_URL']}/{prefix}nodes_1", method="DELETE")  # noqa: S310 - our own URL
    with suppress(urllib.error.HTTPError):
        urllib.request.urlopen(index, timeout=_SECONDS).close()  # noqa: S310
