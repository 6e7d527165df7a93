"""GraphML of a board, by a stream writer: valid for strict readers, whatever the texts hold.

Every value is declared with its type first. Attributes of nodes are texts, those that are no string as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, Final
from xml.sax.saxutils import XMLGenerator

from pulse_kg.domain.schema import canonical_json

_NAMESPACE: Final = "http://graphml.graphdrawing.org/xmlns"
_ATTRIBUTES: Final = {
    "xmlns": _NAMESPACE,
    "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance",
    "xsi:schemaLocation": f"{_NAMESPACE} {_NAMESPACE}/1.0/graphml.xsd",
}
# What XML 1.0 can't hold, not even as a reference.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TYPES: Final[Mapping[type, str]] = {bool: "boolean", int: "long", float: "double", str: "string"}
_IDENTITY: Final = frozenset({"node_id", "edge_id", "src", "dst", "board_id", "attributes"})


def write_graphml(
    board_id: str,
    nodes: Callable[[], Iterable[Mapping[str, Any]]],
    edges: Callable[[], Iterable[Mapping[str, Any]]],
    output: BinaryIO,
) -> None:
    """Writes a board.

    Args:
        board_id: The id of the graph.
        nodes: Gives the documents of the nodes; called twice, because declarations come before data.
        edges: The same for the edges.
        output: Gets UTF-8.
    """
    node_keys, edge_keys = _declared(nodes()), _declared(edges())
    xml = _Writer(output)
    xml.open("graphml", _ATTRIBUTES)
    for domain, keys in (("node", node_keys), ("edge", edge_keys)):
        for name, kind in sorted(keys.items()):
            xml.empty("key", {"id": f"{domain}.{name}", "for": domain, "attr.name": name, "attr.type": kind})
    xml.open("graph", {"id": board_id, "edgedefault": "directed"})
    for node in nodes():
        xml.open("node", {"id": node["node_id"]})
        _write_data(xml, "node", _flat(node), node_keys)
        xml.close("node")
    for edge in edges():
        xml.open("edge", {"id": edge["edge_id"], "source": edge["src"], "target": edge["dst"]})
        _write_data(xml, "edge", _flat(edge), edge_keys)
        xml.close("edge")
    xml.close("graph")
    xml.close("graphml")
    xml.end()


def _declared(documents: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Name → type of every value that occurs."""
    keys: dict[str, str] = {}
    for document in documents:
        for name, value in _flat(document).items():
            kind = _TYPES[type(value)]
            # A number that is whole in one element and not in another.
            keys[name] = "double" if {kind, keys.get(name, kind)} == {"long", "double"} else kind
    return keys


def _flat(document: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an element: no nulls, and each attribute under a name of its own, as text."""
    values = {name: value for name, value in document.items() if name not in _IDENTITY and value is not None}
    for name, value in document.get("attributes", {}).items():
        values[f"attributes.{name}"] = value if isinstance(value, str) else canonical_json(value)
    return values


def _write_data(xml: _Writer, domain: str, values: Mapping[str, Any], keys: Mapping[str, str]) -> None:
    for name in sorted(values):
        value = values[name]
        text = str(value).lower() if isinstance(value, bool) else repr(float(value)) if keys[name] == "double" else str(value)
        xml.text("data", {"key": f"{domain}.{name}"}, text)


class _Writer:
    """Elements one after the other, each on a line."""

    def __init__(self, output: BinaryIO) -> None:
        self._xml = XMLGenerator(output, encoding="UTF-8", short_empty_elements=True)
        self._xml.startDocument()

    def open(self, name: str, attributes: Mapping[str, str]) -> None:
        """Begins an element."""
        self._start(name, attributes)
        self._xml.ignorableWhitespace("\n")

    def close(self, name: str) -> None:
        """Ends an element."""
        self._xml.endElement(name)
        self._xml.ignorableWhitespace("\n")

    def empty(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element without content."""
        self._start(name, attributes)
        self.close(name)

    def text(self, name: str, attributes: Mapping[str, str], text: str) -> None:
        """An element that holds text."""
        self._start(name, attributes)
        self._xml.characters(_NOT_XML.sub("\ufffd", text))
        self.close(name)

    def end(self) -> None:
        """Ends the document."""
        self._xml.endDocument()

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._xml.startElement(name, {key: _NOT_XML.sub("\ufffd", value) for key, value in attributes.items()})  # type: ignore[arg-type]
