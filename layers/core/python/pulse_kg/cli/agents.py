"""`pulse-kg agents`: who may call, what they may do, and on which boards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from pulse_kg.cli.app import App, pass_app
from pulse_kg.cli.commands import Command, Group
from pulse_kg.cli.documents import agent_document, key_document
from pulse_kg.cli.output import Table, counted, to_the_second
from pulse_kg.ports.identity import Agent
from pulse_kg.usecases.identity import change_flags, create_agent, deny_board, effective_flags, find_agent, grant_board, revoke_agent

ONCE = "This is the only time it is shown: keep it now."

PRESETS_MEANING: Final = (
    ("Full Control", "everything: reads with query_cypher, the whole of a session, all administration"),
    ("Spec", "reads, the whole of a session; health, dead letters and their reprocessing"),
    ("Validator", "reads, the whole of a session; health"),
    ("QA", "reads, a session up to its proposals but no commit; health"),
    ("Executor", "reads; health"),
    ("Reporter", "reads; health"),
    ("Sprint Manager", "reads; health"),
)
"""Preset → what it may do, for a reader."""

_CHANGES = "pulse_kg.flags"


class _Preset(click.types.StringParamType):
    """The name of a preset, which is checked with everything else; where it is missing, all of them are shown."""

    name = "preset"

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """The presets, after "Missing option '--preset'."."""
        del param, ctx
        width = max(len(name) for name, _ in PRESETS_MEANING)
        return "\n".join(["It says what the agent may do:", *(f"  {name:{width}}  {meaning}" for name, meaning in PRESETS_MEANING)])


@click.group(
    cls=Group,
    examples=("pulse-kg agents create ann --preset Spec --board web", "pulse-kg agents flags ann +kg.power.cypher -kg.session.commit"),
)
def agents() -> None:
    """Agents are who may call: each has a preset of permissions and the boards that are granted to it."""


@agents.command(
    "create",
    examples=(
        "pulse-kg agents create ann --preset Spec --board web",
        "pulse-kg agents create bot --preset 'Full Control' --board web --board api --json",
        "pulse-kg agents create eve --preset QA --board web --flag kg.power.cypher",
    ),
    sections={"Presets": PRESETS_MEANING},
)
@click.argument("name")
@click.option("--preset", type=_Preset(), required=True, metavar="PRESET", help="What it may do; see below.")
@click.option("--board", "board_ids", multiple=True, metavar="BOARD", help="A board it may use; repeat it for more.")
@click.option("--flag", "flags", multiple=True, metavar="FLAG", help="A permission beyond the preset; repeat it for more.")
@pass_app
def create(app: App, name: str, preset: str, board_ids: tuple[str, ...], flags: tuple[str, ...]) -> None:
    """Make the agent NAME and its API key.

    The key is shown this once; only a hash of it is kept.
    """
    container = app.container()
    issued = create_agent(
        name,
        preset,
        board_ids,
        flags,
        identity=container.identity,
        boards=container.boards,
        ids=container.ids,
        now=container.clock.now(),
    )
    made = agent_document(issued.agent)
    shown = ("preset", "boards", "flags", "added_flags", "created_at")
    document = {"agent_id": issued.agent.agent_id, "name": name, "api_key": issued.api_key, **{key: made[key] for key in shown}}
    boards_text = ", ".join(issued.agent.boards) or "none yet (pulse-kg agents grant adds one)"
    app.answer(document, f"Made {name}, {issued.agent.preset}, boards: {boards_text}.", f"API key: {issued.api_key}", ONCE)


@agents.command("list", examples=("pulse-kg agents list",))
@pass_app
def list_agents(app: App) -> None:
    """List all agents."""
    found = app.container().identity.agents()
    rows = [(a.name, a.preset, _seen(a), a.agent_id, "revoked" if a.revoked_at is not None else None) for a in found]
    empty = "There is no agent yet. Make one with: pulse-kg agents create NAME --preset Spec --board BOARD"
    table = Table(("name", "preset", "boards", "id", "state"), rows, empty, texts=("name", "boards"))
    app.answer({"agents": [agent_document(a) for a in found]}, table)


@agents.command("show", examples=("pulse-kg agents show ann",))
@click.argument("name")
@pass_app
def show(app: App, name: str) -> None:
    """Show the agent NAME.

    Its boards, the permissions in force, and what is known of its keys.
    """
    identity = app.container().identity
    agent = find_agent(name, identity)
    document = {**agent_document(agent), "keys": [key_document(k) for k in identity.keys(agent.agent_id)]}
    facts = [(key.replace("_", " "), document[key]) for key in document if key != "keys" and document[key] not in (None, [])]
    keys = [(k["public_id"], to_the_second(k["created_at"]), to_the_second(k["revoked_at"])) for k in document["keys"]]
    shown = Table(("fact", "value"), [(key, to_the_second(v) if key.endswith(" at") else v) for key, v in facts], texts=("value",))
    app.answer(document, shown, Table(("key", "created", "revoked"), keys, "It has no key."))


@agents.command("grant", examples=("pulse-kg agents grant ann --board api",))
@click.argument("name")
@click.option("--board", "board_id", required=True, metavar="BOARD", help="The board.")
@pass_app
def grant(app: App, name: str, board_id: str) -> None:
    """Grant a board to NAME, and lift a denial of it."""
    container = app.container()
    before = find_agent(name, container.identity)
    agent = grant_board(name, board_id, identity=container.identity, boards=container.boards)
    had = board_id in before.boards
    if board_id in before.denied:
        done = f"Lifted the denial of the board {board_id}" + (f", which {name} may use again." if had else f" and granted it to {name}.")
    else:
        done = f"{name} had the board {board_id} already." if had else f"Granted the board {board_id} to {name}."
    _answer(app, agent, done)


@agents.command("deny", examples=("pulse-kg agents deny ann --board api",))
@click.argument("name")
@click.option("--board", "board_id", required=True, metavar="BOARD", help="The board.")
@pass_app
def deny(app: App, name: str, board_id: str) -> None:
    """Deny a board to NAME; a denial wins over a grant."""
    container = app.container()
    before = find_agent(name, container.identity)
    agent = deny_board(name, board_id, identity=container.identity, boards=container.boards)
    if board_id in before.denied:
        done = f"{name} was denied the board {board_id} already."
    else:
        done = f"Denied the board {board_id} to {name}; 'pulse-kg agents grant' lifts it."
    _answer(app, agent, done)


class _FlagsCommand(Command):
    """Takes what begins with one `+` or `-` for a change, not for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        changes = [a for a in args if a[:1] in ("+", "-") and a[1:2] not in ("", "-")]
        ctx.meta[_CHANGES] = changes
        return super().parse_args(ctx, [a for a in args if a not in changes])


@agents.command(
    "flags",
    cls=_FlagsCommand,
    options_metavar="[OPTIONS] [+FLAG] [-FLAG]...",
    examples=("pulse-kg agents flags ann +kg.power.cypher", "pulse-kg agents flags ann +kg.admin.tick -kg.session.*"),
)
@click.argument("name")
@click.pass_context
def flags(ctx: click.Context, name: str) -> None:
    """Change the permissions of NAME.

    +FLAG adds one beyond the preset, -FLAG takes one away; a flag needs its sign. What is taken away wins over what the preset or an added
    group gives.
    """
    app = ctx.ensure_object(App)
    changes: list[str] = ctx.meta[_CHANGES]
    if not changes:
        raise click.UsageError("Say what changes: +FLAG adds a permission, -FLAG takes it away.", ctx)
    added, removed = ([c[1:] for c in changes if c[0] == sign] for sign in "+-")
    agent = change_flags(name, added, removed, identity=app.container().identity)
    if not app.json and (held := sorted(set(added) & set(agent.added_flags) - effective_flags(agent) - _wildcards(added))):
        app.note(f"Not in force, because a removal covers it: {', '.join(held)}")
    done = [f"{verb} {', '.join(which)}" for verb, which in (("added", added), ("took away", removed)) if which]
    _answer(app, agent, f"Permissions of {name}: {' and '.join(done)}.")


@agents.command("revoke", examples=("pulse-kg agents revoke ann",))
@click.argument("name")
@pass_app
def revoke(app: App, name: str) -> None:
    """End NAME and all its keys, for good. What it consolidated stays."""
    container = app.container()
    agent, keys = revoke_agent(name, identity=container.identity, now=container.clock.now())
    document = {**agent_document(agent), "keys_revoked": keys}
    app.answer(document, f"Revoked {name}; {counted(keys, 'key')} ended with it.")


def _answer(app: App, agent: Agent, done: str) -> None:
    facts: Sequence[tuple[str, Sequence[str]]] = (
        ("boards", _seen(agent)),
        ("denied", agent.denied),
        ("permissions", sorted(effective_flags(agent))),
    )
    app.answer(agent_document(agent), done, Table((agent.name, agent.preset), [f for f in facts if f[1]], texts=(agent.preset,)))


def _seen(agent: Agent) -> list[str]:
    return [board for board in agent.boards if board not in agent.denied]


def _wildcards(flags: list[str]) -> set[str]:
    return {flag for flag in flags if flag.endswith(".*")}
