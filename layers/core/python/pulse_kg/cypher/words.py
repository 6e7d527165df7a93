"""The words that a query may not use as plain names, and those that begin what is not allowed."""

from __future__ import annotations

from typing import Final

RESERVED: Final = frozenset(
    "ALL AND AS ASC ASCENDING BY CALL CASE CONTAINS CREATE DELETE DESC DESCENDING DETACH DISTINCT ELSE END ENDS EXISTS FALSE FOREACH IN IS "
    "LIMIT MATCH MERGE NOT NULL ON OPTIONAL OR ORDER REMOVE RETURN SET SKIP STARTS THEN TRUE UNION UNWIND WHEN WHERE WITH XOR YIELD".split()
)
"""Keywords in capitals; as the name of a variable they need back-ticks."""

FORBIDDEN: Final = frozenset(
    "ALTER ANALYZE ATTACH BEGIN CHECKPOINT COMMENT COMMIT COPY CREATE DEALLOCATE DELETE DENY DETACH DROP DRYRUN ENABLE EXPORT FOREACH "
    "GRANT IMPORT INSERT INSTALL LOAD MERGE PREPARE REMOVE RENAME REVOKE ROLLBACK SET SHOW START STOP TERMINATE TRUNCATE UNINSTALL UPDATE "
    "USE USING VACUUM".split()
)
"""Words that begin a statement that writes, leaves the board, or speaks to the server."""

OF_OTHER_LANGUAGES: Final = {
    "FROM": "A query begins with MATCH.",
    "GROUP": "What is returned beside an aggregate makes the groups; there is no GROUP BY.",
    "HAVING": "Filter groups by WITH … WHERE …",
    "ILIKE": "Write toLower(text) CONTAINS 'part'.",
    "JOIN": "Write a pattern: (a)-[:type]->(b).",
    "LIKE": "Write CONTAINS, STARTS WITH, ENDS WITH, or =~ with a regular expression.",
    "SELECT": "Write MATCH … RETURN …",
}
"""What those who come from SQL write, and what says the same here."""

HINTS: Final = {
    "LOAD": "Nothing but the board can be read: give values as parameters.",
    "USE": "A query reads the board of the call's board_id only.",
    "SHOW": "schema_info tells node types, relationship types and attributes.",
    "FOREACH": "UNWIND goes over a list.",
}
