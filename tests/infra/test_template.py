"""What template.yaml must have: of each function, each table, each queue, and of what each may do."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from infra.deploy.layers import FUNCTION_LAYERS
from pulse_kg.adapters.dynamodb.tables import TABLES, TTL
from pulse_kg.adapters.embedding.model_files import MODEL_ID
from pulse_kg.mcp.tools import TOOL_NAMES
from pulse_kg.settings import Settings, default_model_dir
from tests.infra.template import RESOURCES, TEMPLATE, as_list, folder_of, functions, of_type, statements, texts

FUNCTIONS = functions()
GLOBALS = TEMPLATE["Globals"]["Function"]
PARAMETERS = TEMPLATE["Parameters"]
each_function = pytest.mark.parametrize("name", sorted(FUNCTIONS))
each_tool = pytest.mark.parametrize("tool", TOOL_NAMES)


def pascal(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def routes(properties: dict[str, Any]) -> set[tuple[str, str]]:
    events = [event["Properties"] for event in properties.get("Events", {}).values() if event["Type"] == "Api"]
    return {(event["Method"], event["Path"]) for event in events}


def attached(function: str) -> set[str]:
    """The policies of this template that a function's role has, whatever the parameters."""
    policies = RESOURCES[FUNCTIONS[function]["Role"]["Fn::GetAtt"][0]]["Properties"]["ManagedPolicyArns"]
    return {text for text in texts(policies) if text in RESOURCES}


@each_tool
def test_every_tool_has_a_function_a_route_a_role_and_a_log(tool: str) -> None:
    name = pascal(tool)
    properties = FUNCTIONS[f"{name}Function"]
    assert folder_of(properties) == tool
    assert properties["CodeUri"] == f"functions/{tool}/"
    assert routes(properties) == {("POST", f"/tools/{tool}"), ("OPTIONS", f"/tools/{tool}")}
    assert properties["Role"] == {"Fn::GetAtt": [f"{name}Role", "Arn"]}
    assert properties["LoggingConfig"] == {"LogGroup": {"Ref": f"{name}Log"}}


def test_the_endpoint_may_call_the_tools_and_nothing_else() -> None:
    role = RESOURCES["McpRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    [allowed] = [statement["Resource"] for statement in role if statement["Action"] == "lambda:InvokeFunction"]
    assert {resource["Fn::GetAtt"][0] for resource in allowed} == {f"{pascal(tool)}Function" for tool in TOOL_NAMES}


def test_the_endpoint_takes_every_method_that_a_client_may_try() -> None:
    assert routes(FUNCTIONS["McpFunction"]) >= {(method, "/mcp") for method in ("POST", "GET", "DELETE", "OPTIONS")} | {("GET", "/healthz")}


@each_function
def test_every_function_has_a_role_of_its_own(name: str) -> None:
    role = FUNCTIONS[name]["Role"]["Fn::GetAtt"][0]
    users = {other for other, properties in FUNCTIONS.items() if properties["Role"]["Fn::GetAtt"][0] == role}
    assert users in ({name}, {"EmbedFunction", "EmbedImageFunction"})  # of which a deployment has one


@each_function
def test_every_function_logs_to_a_group_of_its_own_that_forgets(name: str) -> None:
    log = FUNCTIONS[name]["LoggingConfig"]["LogGroup"]["Ref"]
    group = RESOURCES[log]["Properties"]
    assert group["LogGroupName"]["Fn::Sub"] == "/aws/lambda/${AWS::StackName}-" + folder_of(FUNCTIONS[name])
    assert group["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    role = RESOURCES[FUNCTIONS[name]["Role"]["Fn::GetAtt"][0]]["Properties"]
    written = [s["Resource"] for s in role["Policies"][0]["PolicyDocument"]["Statement"] if "logs:PutLogEvents" in as_list(s["Action"])]
    assert written == [{"Fn::Sub": "${" + log + ".Arn}"}]


@pytest.mark.parametrize(("holder", "statement"), statements(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_statement_names_its_actions_and_resources(holder: str, statement: dict[str, Any]) -> None:
    assert statement["Effect"] == "Allow"
    for action in as_list(statement["Action"]):
        assert re.fullmatch(r"[a-z0-9-]+:[A-Za-z]+", action), action
    for resource in as_list(statement["Resource"]):
        assert resource != "*"
        assert all(text != "*" and not text.endswith(":*") for text in texts(resource))


def test_a_caller_s_key_is_all_that_a_tool_may_look_up_in_the_identity_table() -> None:
    [statement] = RESOURCES["CallerPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert set(statement["Action"]) == {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"}
    assert statement["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["key#*", "agent#*"]}}


def test_only_a_commit_the_relay_and_the_tick_may_write_boards_graph_and_vectors() -> None:
    finishing = {"CommitConsolidationFunction", "OutboxRelayFunction"}
    for policy, allowed in (
        ("BoardsWritePolicy", finishing | {"DecayTickFunction"}),
        ("GraphWritePolicy", finishing | {"DecayTickFunction"}),
        ("VectorsWritePolicy", finishing),
        ("EventsPolicy", finishing),
        ("HitsPolicy", {"QueryNaturalFunction", "QueryCypherFunction"}),
    ):
        assert {name for name in FUNCTIONS if policy in attached(name)} == allowed


def test_the_embedding_function_may_reach_no_store() -> None:
    assert attached("EmbedFunction") == set()


@each_function
def test_every_function_is_answered_before_the_gateway_gives_up(name: str) -> None:
    properties = FUNCTIONS[name]
    timeout = properties.get("Timeout", GLOBALS["Timeout"])
    if any(event["Type"] == "Api" for event in properties.get("Events", {}).values()):
        assert timeout <= 29
    if folder_of(properties) in TOOL_NAMES:
        assert timeout < FUNCTIONS["McpFunction"]["Timeout"]


@each_function
def test_a_function_that_is_invoked_without_an_answer_keeps_what_failed(name: str) -> None:
    properties = FUNCTIONS[name]
    if any(event["Type"] in {"Schedule", "ScheduleV2", "EventBridgeRule", "S3", "SNS"} for event in properties.get("Events", {}).values()):
        queue = properties["DeadLetterQueue"]["TargetArn"]["Fn::GetAtt"][0]
        assert RESOURCES[queue]["Type"] == "AWS::SQS::Queue"


def test_the_decay_tick_is_started_each_hour_and_never_beside_itself() -> None:
    (properties,) = [function for function in FUNCTIONS.values() if folder_of(function) == "decay_tick"]
    (event,) = properties["Events"].values()
    assert event == {"Type": "Schedule", "Properties": {"Schedule": "rate(1 hour)"}}
    assert properties["ReservedConcurrentExecutions"] == 1


def test_a_queue_hides_a_message_six_times_as_long_as_its_function_works() -> None:
    for properties in FUNCTIONS.values():
        for event in properties.get("Events", {}).values():
            if event["Type"] == "SQS":
                queue = RESOURCES[event["Properties"]["Queue"]["Fn::GetAtt"][0]]["Properties"]
                assert queue["VisibilityTimeout"] >= 6 * properties.get("Timeout", GLOBALS["Timeout"])
                assert event["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_every_queue_is_encrypted_and_every_one_of_the_dead_is_watched() -> None:
    queues = of_type("AWS::SQS::Queue")
    watched = {text for alarm in of_type("AWS::CloudWatch::Alarm").values() for text in texts(alarm["Dimensions"])}
    dead = {name for name in queues if name != "Events"}
    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues.values())
    assert dead <= watched
    assert queues["Events"]["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0] in dead
    assert queues["Events"]["RedrivePolicy"]["maxReceiveCount"] >= 5
    assert queues["Events"]["FifoQueue"] is queues["DeadEvents"]["FifoQueue"] is True


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_tables_are_those_of_the_adapter_and_are_kept(table: Any) -> None:
    resource = RESOURCES[f"{pascal(table.name)}Table"]
    properties = resource["Properties"]
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert properties["TableName"]["Fn::Sub"] == "${TablePrefix}" + table.name
    assert properties["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["TimeToLiveSpecification"] == {"AttributeName": TTL, "Enabled": True}
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["SSESpecification"] == {"SSEEnabled": True}


def test_each_table_has_the_attributes_and_indexes_that_the_adapter_makes() -> None:
    from pulse_kg.adapters.dynamodb.tables import _definition

    for table in TABLES:
        made, ours = _definition(table, "x"), RESOURCES[f"{pascal(table.name)}Table"]["Properties"]
        assert ours.get("GlobalSecondaryIndexes", []) == made.get("GlobalSecondaryIndexes", [])
        assert sorted(ours["AttributeDefinitions"], key=str) == sorted(made["AttributeDefinitions"], key=str)


def test_there_are_no_other_tables() -> None:
    assert len(of_type("AWS::DynamoDB::Table")) == len(TABLES)


@each_function
def test_the_architecture_is_a_parameter(name: str) -> None:
    assert FUNCTIONS[name].get("Architectures", GLOBALS["Architectures"]) == [{"Ref": "Architecture"}]
    assert sorted(PARAMETERS["Architecture"]["AllowedValues"]) == ["arm64", "x86_64"]


def test_the_layers_of_each_function_are_those_whose_size_the_build_checks() -> None:
    for name, properties in FUNCTIONS.items():
        if "Layers" not in properties:
            continue
        layers = tuple(layer["Ref"].removesuffix("Layer").lower() for layer in properties["Layers"])
        assert layers == FUNCTION_LAYERS["embed" if name == "EmbedFunction" else "tool"]
    assert {layer["ContentUri"] for layer in of_type("AWS::Serverless::LayerVersion").values()} == {
        f"build/layers/{name}.zip" for name in ("core", "edge", "dependencies", "model")
    }


def test_the_model_is_in_the_embedding_function_alone() -> None:
    with_model = {name for name, properties in FUNCTIONS.items() if {"Ref": "ModelLayer"} in properties.get("Layers", [])}
    assert with_model == {"EmbedFunction"}


def test_the_embedding_function_comes_from_a_layer_or_from_an_image_never_both() -> None:
    assert RESOURCES["EmbedFunction"]["Condition"] == "EmbedsFromZip"
    assert RESOURCES["EmbedImageFunction"]["Condition"] == "EmbedsFromImage"
    conditions = TEMPLATE["Conditions"]
    assert conditions["EmbedsFromImage"] == {"Fn::Not": [conditions["EmbedsFromZip"]]}
    # With SAM's metadata of an image a build would call for a container engine, used or not.
    assert "Metadata" not in RESOURCES["EmbedImageFunction"]


def test_on_aws_the_embedding_function_runs_on_a_system_that_can_load_its_libraries() -> None:
    assert RESOURCES["EmbedFunction"]["Properties"]["Runtime"] == {"Ref": "EmbedRuntime"}
    assert PARAMETERS["EmbedRuntime"]["Default"] != "python3.11"


def test_the_named_model_is_the_one_that_is_built() -> None:
    model_id, dimension, digest = PARAMETERS["EmbedModel"]["Default"].split()
    built = json.loads((default_model_dir() / "model.json").read_text(encoding="utf-8"))
    assert (model_id, int(dimension), digest) == (MODEL_ID, built["dimension"], built["digest"])


@each_function
def test_every_variable_of_a_function_is_one_that_the_program_knows(name: str) -> None:
    variables = {**GLOBALS["Environment"]["Variables"], **FUNCTIONS[name].get("Environment", {}).get("Variables", {})}
    plain = {key: value if isinstance(value, str) else "x" for key, value in variables.items()}
    plain |= {"PULSE_KG_LOG_LEVEL": "INFO", "PULSE_KG_ALLOWED_ORIGINS": "none", "PULSE_KG_MODEL_DIR": "/opt/model"}
    Settings.from_environment(plain)


def test_an_answer_fits_twice_into_what_a_function_may_answer() -> None:
    assert int(GLOBALS["Environment"]["Variables"]["PULSE_KG_MAX_RESPONSE_BYTES"]) <= 2_500_000


def test_the_api_throttles() -> None:
    [settings] = RESOURCES["Api"]["Properties"]["MethodSettings"]
    assert settings["ThrottlingRateLimit"] == {"Ref": "ThrottlingRate"}
    assert settings["ThrottlingBurstLimit"] == {"Ref": "ThrottlingBurst"}


def test_what_the_gateway_says_itself_has_the_form_of_our_errors() -> None:
    for response in RESOURCES["Api"]["Properties"]["GatewayResponses"].values():
        error = json.loads(response["ResponseTemplates"]["application/json"])["error"]
        assert set(error) == {"code", "status", "message", "details", "retryable", "correlation_id"}
        assert error["status"] == response["StatusCode"]


def test_no_default_opens_the_stores_to_somebody_s_account() -> None:
    assert "Default" not in PARAMETERS["GremlinUrl"]
    assert "Default" not in PARAMETERS["OpenSearchUrl"]
    assert not re.search(r"\b\d{12}\b", (TEMPLATE["Description"] + json.dumps(RESOURCES)))
