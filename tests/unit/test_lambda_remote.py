"""Calls of other functions: what Lambda may answer, and the embedding model behind such a call."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError

from pulse_kg.adapters.awslambda.embedder import MAX_TEXTS, RemoteEmbedder, embedder_from
from pulse_kg.adapters.awslambda.invoker import MAX_PAYLOAD_BYTES, LambdaInvoker
from pulse_kg.adapters.budget import time_budget
from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.bootstrap import embedder_of
from pulse_kg.errors import EmbedderTimeout, EmbeddingModelMismatch, PayloadTooLarge, ResourceExhausted, StoreUnavailable
from pulse_kg.lambda_edge.embedding import embed_function
from pulse_kg.ports.embedder import ModelInfo
from pulse_kg.ports.functions import FunctionFailed, FunctionInvoker, FunctionTimeout
from pulse_kg.settings import Settings
from tests.support.lambda_calls import Context, package_logger_restored


class Client:
    """Lambda's client with a prepared answer."""

    def __init__(self, answer: object = None, *, error: str | None = None, raises: Exception | None = None) -> None:
        self._body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self._error, self._raises = error, raises
        self.sent: list[dict[str, Any]] = []

    def invoke(self, **parameters: Any) -> dict[str, Any]:
        self.sent.append(parameters)
        if self._raises is not None:
            raise self._raises
        return {"StatusCode": 200, "Payload": io.BytesIO(self._body), **({"FunctionError": self._error} if self._error else {})}


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "m"}}, "Invoke")


def test_the_answer_comes_back_decoded() -> None:
    client = Client({"status": 200})
    assert LambdaInvoker(client=client).invoke("kg-x", {"a": "ü"}) == {"status": 200}
    assert client.sent[0]["FunctionName"] == "kg-x"
    assert client.sent[0]["InvocationType"] == "RequestResponse"
    assert client.sent[0]["Payload"] == '{"a":"ü"}'.encode()


def test_a_lone_surrogate_is_sent_as_an_escape() -> None:
    client = Client({})
    LambdaInvoker(client=client).invoke("kg-x", {"a": "\ud800"})
    assert client.sent[0]["Payload"] == b'{"a":"\\ud800"}'


@pytest.mark.parametrize("code", ["TooManyRequestsException", "ThrottlingException", "ServiceException", "EC2ThrottledException"])
def test_a_function_that_is_busy_may_be_called_again(code: str) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        LambdaInvoker(client=Client(raises=refused(code))).invoke("kg-x", {})
    assert caught.value.retryable


@pytest.mark.parametrize("error", [EndpointConnectionError(endpoint_url="http://x"), NoCredentialsError()])
def test_a_service_out_of_reach_is_unavailable(error: Exception) -> None:
    with pytest.raises(StoreUnavailable):
        LambdaInvoker(client=Client(raises=error)).invoke("kg-x", {})


@pytest.mark.parametrize(
    "client",
    [
        Client(raises=ReadTimeoutError(endpoint_url="http://x")),
        Client({"errorType": "Sandbox.Timedout", "errorMessage": "Task timed out after 3.00 seconds"}, error="Unhandled"),
        Client({"errorMessage": "2026-01-01 r Task timed out after 3.00 seconds"}, error="Unhandled"),
    ],
)
def test_a_function_without_an_answer_in_time_says_that_its_work_may_be_done(client: Client) -> None:
    with pytest.raises(FunctionTimeout, match="may or may not"):
        LambdaInvoker(client=client).invoke("kg-x", {})


@pytest.mark.parametrize(
    "client",
    [
        Client({"errorType": "Runtime.ExitError", "errorMessage": "boom"}, error="Unhandled"),
        Client(raises=refused("ResourceNotFoundException")),
        Client(raises=refused("AccessDeniedException")),
        Client(b"<html>"),
    ],
)
def test_a_fault_of_the_deployment_is_no_refusal(client: Client) -> None:
    with pytest.raises(FunctionFailed):
        LambdaInvoker(client=client).invoke("kg-x", {})


def test_too_much_is_refused_before_it_is_sent() -> None:
    client = Client({})
    with pytest.raises(PayloadTooLarge):
        LambdaInvoker(client=client).invoke("kg-x", {"a": "x" * MAX_PAYLOAD_BYTES})
    assert client.sent == []
    with pytest.raises(PayloadTooLarge):
        LambdaInvoker(client=Client(raises=refused("RequestTooLargeException"))).invoke("kg-x", {})


def test_an_answer_that_is_too_large_is_told_as_such() -> None:
    with pytest.raises(ResourceExhausted):
        LambdaInvoker(client=Client({"errorType": "Function.ResponseSizeTooLarge"}, error="Unhandled")).invoke("kg-x", {})


def test_without_time_left_nothing_is_called() -> None:
    client = Client({})
    with time_budget(0), pytest.raises(StoreUnavailable):
        LambdaInvoker(client=client).invoke("kg-x", {})
    assert client.sent == []


class Function:
    """The embedding function over hashed words; counts its calls."""

    def __init__(self) -> None:
        self._handler = embed_function(HashingEmbedder)
        self.calls: list[int] = []

    def invoke(self, function: str, payload: Mapping[str, Any]) -> Any:
        assert function == "kg-embed"
        self.calls.append(len(payload["texts"]))
        return json.loads(json.dumps(self._handler(json.loads(json.dumps(payload)), Context())))


@pytest.fixture
def function() -> Iterator[Function]:
    with package_logger_restored():
        yield Function()


def test_remote_vectors_are_those_of_the_model_itself(function: Function) -> None:
    texts = ["one", "two", "", "one", "a lone surrogate \ud800", "ü"]
    assert RemoteEmbedder("kg-embed", function).embed(texts) == HashingEmbedder().embed(texts)


def test_many_texts_go_in_several_calls_and_equal_ones_once(function: Function) -> None:
    texts = [f"text {n % 150}" for n in range(300)]
    known = RemoteEmbedder("kg-embed", function, info=HashingEmbedder().info())
    assert known.embed(texts) == HashingEmbedder().embed(texts)
    assert function.calls == [MAX_TEXTS, MAX_TEXTS, 150 - 2 * MAX_TEXTS]


def test_long_texts_stay_below_the_payload_s_limit(function: Function) -> None:
    known = RemoteEmbedder("kg-embed", function, info=HashingEmbedder().info())
    known.embed([f"{n} " + "x" * 1_000_000 for n in range(5)])
    assert function.calls == [2, 2, 1]


def test_a_named_model_is_told_without_a_call(function: Function) -> None:
    info = HashingEmbedder().info()
    assert RemoteEmbedder("kg-embed", function, info=info).info() == info
    assert function.calls == []


def test_a_model_that_is_not_named_is_asked_for_once(function: Function) -> None:
    embedder = RemoteEmbedder("kg-embed", function)
    assert embedder.info() == embedder.info() == HashingEmbedder().info()
    assert function.calls == [0]


def test_another_model_than_the_named_one_gives_no_vectors(function: Function) -> None:
    with pytest.raises(EmbeddingModelMismatch):
        RemoteEmbedder("kg-embed", function, info=ModelInfo("other", 384, "sha256:" + "0" * 64)).embed(["x"])


def test_without_time_left_nothing_is_embedded(function: Function) -> None:
    embedder = RemoteEmbedder("kg-embed", function, info=HashingEmbedder().info())
    with pytest.raises(EmbedderTimeout):
        embedder.embed(["x"], timeout_seconds=0)
    assert embedder.embed([], timeout_seconds=0) == []
    with time_budget(0), pytest.raises(EmbedderTimeout):
        embedder.embed(["x"])
    assert function.calls == []


class Broken:
    """A function that does not answer as it should."""

    def __init__(self, answer: object = None, raises: Exception | None = None) -> None:
        self._answer, self._raises = answer, raises

    def invoke(self, function: str, payload: Mapping[str, Any]) -> Any:
        if self._raises is not None:
            raise self._raises
        return self._answer


@pytest.mark.parametrize(
    ("invoker", "error"),
    [
        (Broken(raises=FunctionTimeout()), EmbedderTimeout),
        (Broken(raises=FunctionFailed("kg-embed", "x")), StoreUnavailable),
        (Broken({"error": {"code": "embedder_timeout"}}), EmbedderTimeout),
        (Broken({"error": {"code": "internal_error"}}), StoreUnavailable),
        (Broken([]), StoreUnavailable),
        (Broken({"vectors": []}), StoreUnavailable),
    ],
)
def test_a_broken_function_is_told_in_the_port_s_errors(invoker: FunctionInvoker, error: type[Exception]) -> None:
    with pytest.raises(error):
        RemoteEmbedder("kg-embed", invoker).embed(["x"])


@pytest.mark.parametrize("event", [{}, None, {"texts": "x"}, {"texts": [1]}, {"texts": [], "timeout_seconds": "1"}])
def test_the_embedding_function_refuses_what_it_can_t_read(event: Any) -> None:
    with package_logger_restored():
        assert embed_function(HashingEmbedder)(event, Context())["error"]["code"] == "invalid_argument"


def test_the_variables_choose_the_remote_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    info = HashingEmbedder().info()
    monkeypatch.setenv("PULSE_KG_EMBED_FUNCTION", "kg-embed")
    monkeypatch.setenv("PULSE_KG_EMBED_MODEL", f"{info.model_id} {info.dimension} {info.digest}")
    assert embedder_of(Settings.from_environment({"PULSE_KG_EMBEDDER": "lambda"})).info() == info
    with pytest.raises(StoreUnavailable, match="PULSE_KG_EMBED_FUNCTION"):
        embedder_from({})
