"""How the demo looks: colours, panels and trees on a terminal, the same as plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from pulse_kg.cli.demo_graph import Branch, Graph
from pulse_kg.cli.story import AUTHOR, Chapter
from pulse_kg.cli.story_ask import Answered
from pulse_kg.cli.story_run import Checks, Told, Verdict

_LABEL: Final = 9
_FIELD: Final = 12
_NOTED: Final = frozenset({"Rejected", "Withdrawn", "Draft"})
_COLOURS: Final = {
    "ADD": "green",
    "UPDATE": "yellow",
    "SUPERSEDE": "magenta",
    "NOOP": "blue",
    "override": "bold yellow",
    "conflict": "bold red",
    "abort": "bold yellow",
    "nothing_changed": "blue",
    "near": "cyan",
}
_WORDS: Final = {"nothing_changed": "unchanged"}
_STATES: Final = {"in force": "bold", "revoked": "red", "history": "dim"}
_ANSWERS: Final = {
    "settled": "blue",
    "open": "bold red",
    "rejected": "red",
    "grounded": "green",
    "not so": "bold red",
    "not found": "yellow",
}
_ALTERNATIVES: Final = 2
_NARROWEST: Final = 60
_WIDEST: Final = 120  # longer lines are hard to read


class Screen:
    """Writes the demo on standard output."""

    def __init__(self) -> None:
        if not sys.stdout.isatty() and hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")  # a pipe may have an encoding without arrows and box lines
        console = Console(highlight=False)
        self._console = Console(highlight=False, width=max(_NARROWEST, min(_WIDEST, console.width)))

    def opening(self, paragraphs: Sequence[str]) -> None:
        """What is going to happen."""
        self._console.print(Panel(Group(*_spaced(paragraphs)), title="Pulse KG", title_align="left", border_style="cyan", padding=(0, 1)))

    def line(self, text: str, style: str = "dim") -> None:
        """A line."""
        self._hang(0, Text(), Text(text, style))

    def chapter(self, chapter: Chapter) -> None:
        """A chapter begins."""
        self._console.print()
        self._console.rule(Text(f"{chapter.years}: {chapter.title}", style="bold cyan"), align="left", style="cyan")

    def session(self, told: Told) -> None:
        """A session: what was read, what the server made of it, what was written."""
        year = f"  {told.year}" + (f", {told.status.lower()}" if told.status in _NOTED else "")
        self._hang(_LABEL, Text(f"PEP {told.pep}", "bold cyan"), Text.assemble((told.title, "bold"), (year, "dim")))
        verdicts = [Text.assemble((_WORDS.get(v.hint, v.hint), _COLOURS[v.hint]), f"  {_why(v)}") for v in told.verdicts]
        if told.said:
            self._hang(_LABEL, Text(), Text(told.said, "italic"))
        else:
            verdicts = [Text("  ").join(verdicts)]  # nothing of note: as short as can be
        # What was written stands with what was decided, on one line where it fits.
        who = f"{told.agent}, " if told.agent != AUTHOR else ""
        verdicts[-1] = Text.assemble(verdicts[-1], (f"  [{who}{told.outcome}]", "dim"))
        for verdict in verdicts:
            self._hang(_LABEL, Text(), verdict)

    def graph(self, graph: Graph) -> None:
        """The decisions as a tree."""
        counts = graph.counts
        self._heading("What the board holds now")
        edges = ", ".join(f"{counts[rel]} {rel}" for rel in ("supersedes", "depends_on", "contradicts", "relates_to"))
        self.line(
            f"{counts['decisions']} decisions and {counts['alternatives']} rejected alternatives; edges: {edges}. Newest first, below each "
            "what it replaced."
        )
        self._console.print()
        for branch in reversed(graph.branches):
            tree = Tree(_title(branch), guide_style="dim")
            _grow(tree, branch)
            self._console.print(tree)

    def questions(self) -> None:
        """The questions begin."""
        self._heading("What it answers")
        self.line(
            "A year later another agent comes, with questions. Each is one call of one tool; no language model writes the answers. Some go "
            "to a second board, that of a team which builds an installer; the team is made up."
        )

    def answered(self, told: Answered) -> None:
        """A question, who answered it, and what came of it."""
        self._console.print()
        self._hang(0, Text(), Text.assemble((told.question, "bold"), (f"  {told.tool}", "dim cyan")))
        width = max((len(name) for name, _ in told.shown), default=0)
        for name, text in told.shown:
            lead = Text.assemble("  ", (name, _ANSWERS.get(name, "cyan")))
            self._hang(width + 4 if width else 2, lead, Text(text))

    def audit(self, row: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """An audit row, shortened."""
        self._heading(f"Why: row {row['audit_row_id']} of the audit log, shortened")
        for name, text in audit_lines(row, names):
            self._hang(_FIELD, Text(name, "cyan"), Text(text))

    def end(self, checks: Checks, facts: str, next_steps: Sequence[tuple[str, str]]) -> None:
        """What was checked, and what to do next."""
        self._heading("Checked")
        for failure in checks.failures:
            self._console.print(Text(f"wrong: {failure}", style="bold red"), soft_wrap=True)
        held = len(checks.done) - len(checks.failures)
        self._console.print(Text(f"{held} of {len(checks.done)} checks hold. {facts}", style="red" if checks.failures else "green"))
        if checks.failures:
            return
        grid = Table.grid(padding=(0, 2))
        for command, meaning in next_steps:
            grid.add_row(Text(command, style="bold"), Text(meaning, style="dim"))
        self._console.print()
        self._console.print(Panel(grid, title="Next, on a store of your own", title_align="left", border_style="cyan", padding=(0, 1)))

    def _hang(self, indent: int, label: Text, body: Text) -> None:
        """A label, and a text beside it that wraps into its own column, without blanks at the ends of lines."""
        label.truncate(indent, pad=True)
        for line in body.wrap(self._console, self._console.width - indent):
            line.rstrip()
            self._console.print(Text.assemble(label, line))
            label = Text(" " * indent)

    def _heading(self, text: str) -> None:
        self._console.print()
        self._console.rule(Text(text, style="bold cyan"), align="left", style="cyan")


class Silence:
    """Tells nothing: for `--json`, where only the document at the end is written."""

    def chapter(self, chapter: Chapter) -> None:
        """A chapter begins."""

    def session(self, told: Told) -> None:
        """A session is over."""

    def answered(self, told: Answered) -> None:
        """A question is answered."""


def audit_lines(row: Mapping[str, Any], names: Mapping[str, str]) -> list[tuple[str, str]]:
    """What a reader wants of an audit row, by name."""
    source, counts, proposal, override = row["source"], row["counts"], row["proposals"][0], row["overrides"][0]
    rationale = str(proposal["rationale"])
    for node_id, name in names.items():
        rationale = rationale.replace(node_id, name)
    return [
        ("session", str(row["session_id"])),
        ("agent", str(row["agent_id"])),
        ("source", f"{source['source_type']} {source['source_id']}, version {source['source_version']}"),
        ("content", f"{row['content_hash'][:23]}… ({row['hash_basis']})"),
        ("candidates", f"{len(row['candidates']['nodes'])} nodes, {len(row['candidates']['edges'])} edges, each as it was given"),
        ("proposed", f"{proposal['hint']} by rule {proposal['rule']}: {rationale}"),
        ("overridden", f"{override['hint']}: {override['rationale']}"),
        ("written", ", ".join(f"{name} {n}" for name, n in counts.items())),
        ("event", str(row["event_id"])),
    ]


def _spaced(paragraphs: Sequence[str]) -> list[Text]:
    return [Text(("\n" if i else "") + text) for i, text in enumerate(paragraphs)]


def _why(verdict: Verdict) -> str:
    if verdict.score is None or f"{verdict.score:.2f}" in verdict.why:
        return verdict.why
    return f"{verdict.why.removesuffix('.')} (similarity {verdict.score:.2f})."


def _title(branch: Branch, lead: str = "") -> Text:
    style = _STATES[branch.state]
    state = f", {branch.state}" if branch.state != "in force" else ""
    return Text.assemble((lead, "magenta"), (f"{branch.name} ", f"{style} cyan"), (branch.title, style), (f"  {branch.year}{state}", "dim"))


def _grow(tree: Tree, branch: Branch) -> None:
    for old in branch.supersedes:
        _grow(tree.add(_title(old, "supersedes ")), old)
    for name in branch.depends_on:
        tree.add(Text.assemble(("depends on ", "yellow"), name))
    for name in branch.contradicts:
        tree.add(Text.assemble(("contradicts ", "bold red"), name))
    shown = branch.alternatives[:_ALTERNATIVES]
    for title, reason in shown:
        why = f": {' '.join(reason.split())}" if reason else ""
        tree.add(Text.assemble(("rejected ", "red"), title, (why, "dim"), no_wrap=True, overflow="ellipsis"))
    rest = len(branch.alternatives) - len(shown)
    if rest > 0:
        tree.add(Text(f"rejected {rest} more", "dim"))
