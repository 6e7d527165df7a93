"""The key of the one agent that a deployment behind an AgentCore Gateway may be bound to."""

from __future__ import annotations

import os
from typing import Final

from pulse_kg.errors import StoreUnavailable

VARIABLE: Final = "PULSE_KG_BOUND_KEY_PARAMETER"
"""Names the parameter of AWS Systems Manager (a SecureString) that holds the key; unset, nothing is bound."""

_KEPT_SECONDS: Final = 300
"""How long the parameter's value is kept. The key itself is checked at each call, so a revoked one opens nothing meanwhile."""


def bound_key() -> str | None:
    """The key, or None where nothing is bound.

    Raises:
        StoreUnavailable: The parameter can't be read.
    """
    name = os.environ.get(VARIABLE, "").strip()
    if not name:
        return None
    from aws_lambda_powertools.utilities import parameters

    try:
        return parameters.get_parameter(name, decrypt=True, max_age=_KEPT_SECONDS).strip()
    except parameters.GetParameterError as error:
        raise StoreUnavailable("key") from error
