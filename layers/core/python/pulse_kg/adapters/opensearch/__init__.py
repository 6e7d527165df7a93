"""The vector index on an OpenSearch server or a managed domain, by its k-NN fields."""

from pulse_kg.adapters.opensearch.client import OpenSearchClient, connect
from pulse_kg.adapters.opensearch.errors import IndexRefused
from pulse_kg.adapters.opensearch.layout import IndexSettings
from pulse_kg.adapters.opensearch.rebuild import Rebuilt
from pulse_kg.adapters.opensearch.vectors import OpenSearchVectorIndex

__all__ = ["IndexRefused", "IndexSettings", "OpenSearchClient", "OpenSearchVectorIndex", "Rebuilt", "connect"]
