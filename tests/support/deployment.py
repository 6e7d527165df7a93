"""The template deployed into the local servers of the tests, and functions in the emulator of Lambda's runtime."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest

from infra.deploy.emulator import RUNTIME, SAM
from infra.deploy.layers import build, this_machine
from infra.deploy.trial import TRIAL_LAYERS, Trial, trial
from pulse_kg.endpoints import Endpoints
from tests.support import local_stack


def need(*, there: bool, missing: str) -> None:
    """Skips the test, or fails it where everything is demanded, unless what it needs is there."""
    if there:
        return
    if local_stack.DEMANDED:
        pytest.fail(f"demanded: {missing}", pytrace=False)
    pytest.skip(missing)


def need_lambda() -> None:
    """Skips the test, or fails it where everything is demanded, without the SAM CLI and Lambda's emulator."""
    installed = (SAM / "bin" / "sam").exists() and (RUNTIME / "bin" / "python").exists()
    need(there=installed, missing="the SAM CLI and the emulator of Lambda are not installed: make functions-setup")


def tool_layers() -> Path:
    """The layers of a tool's function, built for this machine."""
    build(this_machine(), TRIAL_LAYERS, only=("core", "edge", "dependencies"))
    return TRIAL_LAYERS


@contextmanager
def deployed() -> Iterator[Trial]:
    """The deployed API."""
    need_lambda()
    servers = local_stack.servers()
    if not _runs_programs(str(servers.aws_url)):
        pytest.skip("this emulator runs functions in containers, which see neither the layers of this machine nor its servers")
    with trial(variables_of(servers)) as made:
        yield made


def _runs_programs(aws_url: str) -> bool:
    """Whether the emulator is the one of `pulse-kg up`, which runs functions as programs of this machine."""
    try:
        with urllib.request.urlopen(f"{aws_url}/_ministack/health", timeout=10) as answer:  # noqa: S310 - the emulator's own
            return bool(answer.status == HTTPStatus.OK)
    except urllib.error.HTTPError as error:
        error.close()
        return False


def variables_of(endpoints: Endpoints) -> dict[str, str]:
    """The variables that name endpoints."""
    named = {
        "AWS_ENDPOINT_URL": endpoints.aws_url,
        "AWS_REGION": endpoints.region,
        "AWS_DEFAULT_REGION": endpoints.region,
        "AWS_ACCESS_KEY_ID": endpoints.access_key,
        "AWS_SECRET_ACCESS_KEY": endpoints.secret_key,
        "PULSE_KG_GREMLIN_URL": endpoints.gremlin_url,
        "PULSE_KG_OPENSEARCH_URL": endpoints.opensearch_url,
        "PULSE_KG_TABLE_PREFIX": endpoints.table_prefix,
        "PULSE_KG_QUEUE_URL": endpoints.queue_url,
    }
    return {name: value for name, value in named.items() if value is not None}
