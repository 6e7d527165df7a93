"""`pulse-kg keys`: new keys for old, and the end of keys."""

from __future__ import annotations

import click

from pulse_kg.cli.agents import ONCE
from pulse_kg.cli.app import App, pass_app
from pulse_kg.cli.commands import Group
from pulse_kg.cli.output import counted
from pulse_kg.usecases.identity import revoke_keys, rotate_key


@click.group(cls=Group, examples=("pulse-kg keys rotate ann",))
def keys() -> None:
    """API keys open an agent; only a hash of each is kept."""


@keys.command("rotate", examples=("pulse-kg keys rotate ann", "pulse-kg keys rotate ann --json"))
@click.argument("name")
@pass_app
def rotate(app: App, name: str) -> None:
    """Make a new key for the agent NAME and end the old ones."""
    container = app.container()
    issued = rotate_key(name, identity=container.identity, ids=container.ids, now=container.clock.now())
    document = {"agent_id": issued.agent.agent_id, "name": name, "api_key": issued.api_key, "keys_revoked": issued.keys_revoked}
    app.answer(document, f"API key: {issued.api_key}", ONCE, f"{counted(issued.keys_revoked, 'older key')} ended.")


@keys.command("revoke", examples=("pulse-kg keys revoke ann",))
@click.argument("name")
@pass_app
def revoke(app: App, name: str) -> None:
    """End all keys of the agent NAME; `rotate` gives it a new one."""
    container = app.container()
    agent, ended = revoke_keys(name, identity=container.identity, now=container.clock.now())
    document = {"agent_id": agent.agent_id, "name": name, "keys_revoked": ended}
    app.answer(document, f"{counted(ended, 'key')} of {name} ended. A new one: pulse-kg keys rotate {name}")
