"""The servers of the local stack: what each is made of, how it is started, and how one knows that it works.

Every one of them listens on 127.0.0.1 and nowhere else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

from pulse_kg.cli.stack_checks import HOST, Check, check_gremlin, check_ministack, check_opensearch
from pulse_kg.cli.stack_fetch import Bundle, Tools, emulator, jars
from pulse_kg.cli.stack_places import Places, write_atomically

_KEPT_VARIABLES: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")
"""All that a server sees of the variables of whoever starts it: somebody's AWS profile or JVM options are not its business."""

_HEAP: Final = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError")

REGION: Final = "us-east-1"
TABLE_PREFIX: Final = "pulse_kg_"
ACCOUNT: Final = "000000000000"


@dataclass(frozen=True)
class Launch:
    """How a server is started.

    Attributes:
        command: The program and its arguments.
        environment: All its variables.
    """

    command: Sequence[str]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Server:
    """One server.

    Attributes:
        name: Of its folders and files.
        title: For a person.
        option: The option for its port, without dashes.
        port: Its port unless another is chosen.
        bundle: What it is made of.
        launch: Writes its settings and says how it is started on a port.
        check: Asks it whether it works.
        start_seconds: How long it may take until it answers.
        stop_seconds: How long it may take to end when it is asked to.
        uses_java: Whether it needs Java.
        after_kill: What to know when it comes back after a kill; None if everything that it had acknowledged is there.
    """

    name: str
    title: str
    option: str
    port: int
    bundle: Bundle
    launch: Callable[[int], Launch]
    check: Check
    start_seconds: float = 120.0
    stop_seconds: float = 30.0
    uses_java: bool = True
    after_kill: str | None = None


def local_servers(places: Places, tools: Tools, environment: Mapping[str, str]) -> tuple[Server, ...]:
    """The servers of the local stack.

    Args:
        places: The folders.
        tools: The machine's programs.
        environment: The variables of whoever starts them.
    """
    graph = jars("janusgraph", "103 jars, 45 MB", places, environment, tools)
    search = jars("opensearch", "81 jars, 57 MB", places, environment, tools)
    stand_in = emulator(places, environment)
    java = tools.java or "java"
    return (
        Server(
            "ministack",
            "AWS (ministack)",
            "aws-port",
            4566,
            stand_in,
            lambda port: _launch_emulator(places, stand_in, environment, port),
            check_ministack,
            uses_java=False,
            after_kill=(
                "it did not end in good order, so its tables and queues are those of the last time it did, older than graph and vectors. "
                "'pulse-kg down --wipe' starts everything afresh."
            ),
        ),
        Server(
            "janusgraph",
            "JanusGraph",
            "gremlin-port",
            8182,
            graph,
            lambda port: _launch_graph(places, graph, java, environment, port),
            check_gremlin,
        ),
        Server(
            "opensearch",
            "OpenSearch",
            "opensearch-port",
            9200,
            search,
            lambda port: _launch_search(places, search, java, environment, port),
            check_opensearch,
        ),
    )


def stack_variables(ports: Mapping[str, int]) -> dict[str, str]:
    """What leads `--store aws` to the servers.

    Args:
        ports: The port of each server, by name.
    """
    return {
        "AWS_ENDPOINT_URL": f"http://{HOST}:{ports['ministack']}",
        # The emulator takes any; the clients insist on some.
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
        "PULSE_KG_GREMLIN_URL": f"ws://{HOST}:{ports['janusgraph']}/gremlin",
        "PULSE_KG_OPENSEARCH_URL": f"http://{HOST}:{ports['opensearch']}",
        "PULSE_KG_TABLE_PREFIX": TABLE_PREFIX,
        "PULSE_KG_QUEUE_URL": f"http://{HOST}:{ports['ministack']}/{ACCOUNT}/{TABLE_PREFIX}events.fifo",
    }


def _launch_emulator(places: Places, bundle: Bundle, environment: Mapping[str, str], port: int) -> Launch:
    state, temporary = places.data("ministack"), places.run("ministack")
    for folder in (state, temporary):
        folder.mkdir(parents=True, exist_ok=True)
    variables = {
        "BIND_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "MINISTACK_REGION": REGION,
        # Else it opens a second port, and that one on every interface.
        "IOT_MTLS_ENABLED": "0",
        # Written when it ends in good order, and only then.
        "PERSIST_STATE": "1",
        "STATE_DIR": str(state),
        "TMPDIR": str(temporary),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return Launch([str(bundle.folder / "bin" / "python"), "-m", "ministack"], {**_kept(environment), **variables})


def _launch_graph(places: Places, bundle: Bundle, java: str, environment: Mapping[str, str], port: int) -> Launch:
    sources, data, run = places.sources / "janusgraph", places.data("janusgraph"), places.run("janusgraph")
    data.mkdir(parents=True, exist_ok=True)
    script, store, server = sources / "schema.groovy", run / "store.properties", run / "server.yaml"
    write_atomically(store, _filled(sources / "store.properties", data=str(data).replace("\\", "\\\\")))
    write_atomically(
        server,
        _filled(sources / "server.yaml", port=str(port), store_file=json.dumps(str(store)), schema_script=json.dumps(str(script))),
    )
    flags = [f"-Dpulse.schema={sources / 'schema.json'}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    flags += ["-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss"]
    program = ["org.janusgraph.graphdb.server.JanusGraphServer", str(server)]
    return Launch([java, *_HEAP, *_java_flags(run), *flags, "-cp", f"{bundle.folder}/*", *program], _kept(environment))


def _launch_search(places: Places, bundle: Bundle, java: str, environment: Mapping[str, str], port: int) -> Launch:
    sources, data, run = places.sources / "opensearch", places.data("opensearch"), places.run("opensearch")
    for folder in (data, run):
        folder.mkdir(parents=True, exist_ok=True)
    flags = ["-Dfile.encoding=UTF-8", "-Dlog4j2.disable.jmx=true", "-Dlog4j.shutdownHookEnabled=false"]
    class_path = os.pathsep.join([str(bundle.folder / "classes"), f"{bundle.folder}/*"])
    program = ["LocalSearch", str(sources), str(data), str(port)]
    return Launch([java, *_HEAP, *_java_flags(run), *flags, "-cp", class_path, *program], _kept(environment))


def _java_flags(run: Path) -> list[str]:
    # Nothing is left outside the folders of the stack.
    return ["-Djava.awt.headless=true", f"-Djava.io.tmpdir={run}", f"-XX:ErrorFile={run}/crash-%p.log", "-XX:-UsePerfData"]


def _kept(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in _KEPT_VARIABLES if name in environment}


def _filled(template: Path, **values: str) -> str:
    # In the comments stands "${…}", which is no name and stays as it is.
    return Template(template.read_text(encoding="utf-8")).safe_substitute(values)
