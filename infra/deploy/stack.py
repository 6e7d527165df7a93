"""Builds the template and deploys it: ``python -m infra.deploy.stack build`` or ``local``."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from infra.deploy.emulator import SAM
from infra.deploy.invoke import STACK_FILE
from infra.deploy.layers import LAYERS, ROOT, Target, build, this_machine

STACK: Final = "pulse-kg"
STAGE: Final = "v1"
_SAM_SETTINGS: Final = {"SAM_CLI_TELEMETRY": "0"}
_LOCAL_SETTINGS: Final = {"SAM_CLI_POLL_DELAY": "0.5"}
"""Seconds between looks at a stack; its own 5 are for AWS."""
_REGION: Final = "us-east-1"
_NO_REPOSITORY: Final = "123456789012.dkr.ecr.us-east-1.amazonaws.com/none"
"""The CLI wants one as soon as a template has a function from an image, used or not; nothing is sent to it."""


def local_variables(text: str) -> dict[str, str]:
    """The variables of ``stack.env``."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))


def local_parameters(variables: Mapping[str, str], target: Target, *, tables_exist: bool, layers: Path = LAYERS) -> dict[str, str]:
    """The template's parameters for the local emulator, which runs functions as programs of this machine.

    Args:
        variables: Of the local servers.
        target: What the layers were built for.
        tables_exist: Whether somebody made the tables.
        layers: The built layers.
    """
    return {
        "Stage": STAGE,
        "Architecture": target.architecture,
        "TablePrefix": variables["PULSE_KG_TABLE_PREFIX"],
        "MakeTables": "false" if tables_exist else "true",
        "GremlinUrl": variables["PULSE_KG_GREMLIN_URL"],
        "OpenSearchUrl": variables["PULSE_KG_OPENSEARCH_URL"],
        "EmbedRuntime": f"python{target.embed_python}",
        # The emulator has no /opt: it puts a layer's Python folder on the path, wherever it unpacked it.
        "ModelDir": str(layers / "model" / "model"),
        "LogLevel": "INFO",
    }


def overrides(parameters: Mapping[str, str]) -> list[str]:
    """Parameters as the SAM CLI takes them."""
    return [f'ParameterKey={name},ParameterValue="{value}"' for name, value in parameters.items()]


def url_of(endpoint: str, api_id: str, stage: str = STAGE) -> str:
    """Where the emulator serves an API's MCP endpoint."""
    return f"{endpoint}/restapis/{api_id}/{stage}/_user_request_/mcp"


def deploy_local(variables: Mapping[str, str], *, stack: str = STACK, folder: Path = ROOT, quiet: bool = False) -> dict[str, str]:
    """Builds and deploys into the emulator of ``pulse-kg up``, or one like it.

    Args:
        variables: Where the local servers are, as in ``stack.env``.
        stack: The stack's name.
        folder: Has the template and the functions; gets the layers and what SAM builds.
        quiet: Whether what SAM says is shown only where it fails.

    Returns:
        The stack's outputs.

    Raises:
        SystemExit: A step failed.
    """
    target, layers = this_machine(), folder / LAYERS.relative_to(ROOT)
    build(target, layers)
    variables = {**variables, "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    parameters = local_parameters(variables, target, tables_exist=_tables_exist(variables, stack), layers=layers)
    _sam(["build", "--cached", "--parallel"], variables, folder, quiet=quiet)
    options = ["--stack-name", stack, "--resolve-s3", "--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
    options += ["--image-repository", _NO_REPOSITORY, "--no-confirm-changeset", "--no-fail-on-empty-changeset", "--no-progressbar"]
    _sam(["deploy", *options, "--parameter-overrides", *overrides(parameters)], {**variables, **_LOCAL_SETTINGS}, folder, quiet=quiet)
    make_index(variables, local=True)
    return _outputs(stack, variables)


def make_index(variables: Mapping[str, str], *, local: bool = False) -> None:
    """Makes the vector index of a deployment if it is missing: no resource of CloudFormation can.

    Args:
        variables: Where the stores are, as for ``--store aws``.
        local: Whether one node keeps it, which has no place for a copy.

    Raises:
        StoreUnavailable: A store does not answer.
    """
    from pulse_kg.adapters.opensearch.layout import IndexSettings
    from pulse_kg.adapters.system import SystemClock
    from pulse_kg.bootstrap import served_store
    from pulse_kg.endpoints import endpoints_of

    store = served_store(endpoints_of(variables), clock=SystemClock())
    try:
        store.vectors.create_index(IndexSettings(replicas=0, refresh_interval="50ms") if local else IndexSettings())
    finally:
        store.close()


def _tables_exist(variables: Mapping[str, str], stack: str) -> bool:
    """Whether the tables are there and are none of the stack's own."""
    if variables["PULSE_KG_TABLE_PREFIX"] + "boards" not in client_of("dynamodb", variables).list_tables()["TableNames"]:
        return False
    from botocore.exceptions import ClientError

    try:
        resources = client_of("cloudformation", variables).describe_stack_resources(StackName=stack)["StackResources"]
    except ClientError:  # no such stack
        return True
    return all(resource["LogicalResourceId"] != "BoardsTable" for resource in resources)


def _outputs(stack: str, variables: Mapping[str, str]) -> dict[str, str]:
    described = client_of("cloudformation", variables).describe_stacks(StackName=stack)["Stacks"][0]
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}


def client_of(service: str, variables: Mapping[str, str]) -> Any:
    """A client of the local emulator."""
    import botocore.session

    return botocore.session.get_session().create_client(
        service,
        region_name=variables["AWS_REGION"],
        endpoint_url=variables["AWS_ENDPOINT_URL"],
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
    )


def _sam(arguments: Sequence[str], variables: Mapping[str, str], folder: Path = ROOT, *, quiet: bool = False) -> None:
    program = SAM / "bin" / "sam"
    if not program.exists():
        sys.exit("deploy: the SAM CLI is not installed; run: make functions-setup")
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    region = {"AWS_DEFAULT_REGION": variables.get("AWS_DEFAULT_REGION", _REGION)}
    ran = subprocess.run(
        [str(program), *arguments],
        cwd=folder,
        env={**kept, **region, **variables, **_SAM_SETTINGS},
        check=False,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
    )
    if ran.returncode != 0:
        sys.stderr.write(ran.stdout or "")
        sys.exit(f"deploy: sam {arguments[0]} failed")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m infra.deploy.stack", description="Builds the template, and deploys it.")
    commands = parser.add_subparsers(dest="command", required=True)
    built = commands.add_parser("build", help="the layers, then sam build")
    built.add_argument("--architecture", choices=["arm64", "x86_64"], default="arm64")
    local = commands.add_parser("local", help="build for this machine and deploy into the emulator of pulse-kg up")
    local.add_argument("--stack", default=STACK)
    commands.add_parser("index", help="make the vector index of the deployment that the variables of --store aws name")
    given = parser.parse_args()
    if given.command == "index":
        make_index(os.environ)
        return
    if given.command == "build":
        sizes = build(Target(given.architecture))
        sys.stdout.write(json.dumps({"layers_bytes": sizes}) + "\n")
        _sam(["build", "--cached", "--parallel", "--parameter-overrides", f"Architecture={given.architecture}"], {})
        return
    if not STACK_FILE.is_file():
        sys.exit("deploy: the local servers are not up; run: make up")
    variables = local_variables(STACK_FILE.read_text(encoding="utf-8"))
    variables |= {name: value for name, value in os.environ.items() if name in variables}
    outputs = deploy_local(variables, stack=given.stack)
    sys.stdout.write(f"MCP: {url_of(variables['AWS_ENDPOINT_URL'], outputs['ApiId'])}\n")


if __name__ == "__main__":
    main()
