"""What the text of a call shows: which function it is, whether it can take its arguments, what kind of value it gives."""

from __future__ import annotations

from collections.abc import Sequence

from pulse_kg.cypher import ast, kinds
from pulse_kg.cypher.aggregates import AGGREGATES, AggregateKind
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.functions import REFUSED_FUNCTIONS, Function, arguments_fault, lookup, nearest
from pulse_kg.cypher.kinds import Kind


def aggregate_of(tree: object) -> AggregateKind | None:
    """The aggregate that is called here, `count(*)` apart; None where none is."""
    return AGGREGATES.get(tree.name.lower()) if isinstance(tree, ast.Call) else None


def is_aggregate(tree: object) -> bool:
    """Whether an aggregate is called here."""
    return isinstance(tree, ast.CountStar) or aggregate_of(tree) is not None


def function_of(tree: ast.Call) -> Function | None:
    """The function that is called; None for an aggregate.

    Raises:
        Fault: There is none of that name, or it takes no DISTINCT.
    """
    if aggregate_of(tree) is not None:
        return None
    function = lookup(tree.name)
    if function is None:
        raise _unknown(tree)
    if tree.distinct:
        raise Fault("UnexpectedSyntax", f"DISTINCT has its place in an aggregate; {function.name}() is none.", tree.span)
    return function


def _unknown(tree: ast.Call) -> Fault:
    refused = REFUSED_FUNCTIONS.get(tree.name.lower())
    if refused is not None:
        return Fault("UnknownFunction", f"{tree.name}() can't be called: {refused}", tree.span)
    near = ", ".join(f"{name}()" for name in nearest(tree.name))
    return Fault("UnknownFunction", f"There is no function {tree.name[:60]}().", tree.span, hint=f"Near are: {near}." if near else None)


def check_call(function: Function, tree: ast.Call, given: Sequence[Kind]) -> None:
    """Checks the number of the arguments and, as far as they are known, their kinds.

    Raises:
        Fault: The call can't succeed.
    """
    if not function.takes(len(given)):
        raise arguments_fault(function, given).at(tree.span)
    for kind, wanted, argument in zip(given, function.kinds, tree.arguments, strict=False):
        if wanted is not None and not kinds.could_be(kind, *wanted):
            raise Fault("InvalidArgumentType", f"{function.name}() takes {_listed(wanted)}, not {kind}.", argument.span)


def _listed(names: frozenset[str]) -> str:
    articled = [str(Kind(name)) for name in sorted(names)]
    return articled[0] if len(articled) == 1 else f"{', '.join(articled[:-1])} or {articled[-1]}"


def kind_of_call(function: Function, given: Sequence[Kind]) -> Kind:
    """The kind of what a call gives."""
    name = function.name.lower()
    if name == "coalesce":
        return kinds.join(given)
    if name in {"head", "last"} and given[0].item is not None:
        return given[0].item
    if name in {"tail", "reverse"} and given[0].name in {"list", "string"}:
        return given[0]
    return function.gives
