"""The embedded store: every port in one SQLite file, shared by threads and processes."""

from pulse_kg.adapters.sqlite.errors import StoreMissing, StoreRefused
from pulse_kg.adapters.sqlite.store import SqliteStore, open_store

__all__ = ["SqliteStore", "StoreMissing", "StoreRefused", "open_store"]
