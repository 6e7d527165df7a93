"""What must hold between the answers to two queries, whatever the graph: no other engine is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from pulse_kg.ports.graph_source import GraphSource
from tests.support.cypher_answers import result_of
from tests.support.cypher_author import LABELS, TYPES, Author, Query, Scope, graph_text
from tests.support.cypher_cells import form
from tests.support.cypher_loader import source_of

EXAMPLES = 120
"""Graphs and queries for each law."""
MOST_ROWS = 3_000
"""A query with more is not of interest: it takes long."""

Step = tuple[str, str]
"""What stands in the brackets of a relationship, and its arrow: `>`, `<` or nothing."""


@dataclass
class Example:
    """A graph by chance, with somebody who writes queries about it."""

    graph: str
    source: GraphSource
    author: Author
    random: Random

    def rows(self, query: str, **options: Any) -> list[Any]:
        """Comparable rows of a query, in its order."""
        return [form(row) for row in result_of(Query(query).text, self.source, **options).rows]

    def bag(self, *queries: str) -> Counter[Any]:
        """The rows of all of these queries, in no order."""
        return Counter(row for query in queries for row in self.rows(query))

    def check(self, equal: bool, *queries: str) -> None:
        """Fails with all that is needed to see the failure again."""
        assert equal, "\n".join((self.graph, *queries))


def examples(law: int) -> Iterator[Example]:
    """The same ones in every run; other ones for another law."""
    for number in range(EXAMPLES):
        random = Random(law * 10_000 + number)
        graph = graph_text(random, nodes=4, edges=6)
        yield Example(graph, source_of(graph), Author(random), random)


def keys(scope: Scope) -> str:
    """What tells the rows of a match apart."""
    return ", ".join(f"{name}.k" for name in (*scope.nodes, *scope.rels))


def chain(nodes: Sequence[str], steps: Sequence[Step]) -> str:
    """A pattern."""
    text = nodes[0]
    for (body, arrow), node in zip(steps, nodes[1:], strict=True):
        inside = f"[{body}]" if body else ""
        text += f"{'<' if arrow == '<' else ''}-{inside}-{'>' if arrow == '>' else ''}{node}"
    return text


def backwards(nodes: Sequence[str], steps: Sequence[Step]) -> str:
    """The same pattern, from its end."""
    turned = {">": "<", "<": ">", "": ""}
    return chain(nodes[::-1], [(body, turned[arrow]) for body, arrow in steps[::-1]])


def by_chance(random: Random, *lengths: str, most: int = 3, named: str = "") -> tuple[list[str], list[Step]]:
    """Nodes and steps of a pattern; some nodes are named twice.

    Args:
        random: Where the choices come from.
        lengths: One of these is put behind the type of each relationship.
        most: Relationships.
        named: The beginning of the relationships' names, if they have one.
    """
    count = random.randint(1, most)
    names = [random.choice(("", f"n{n}", "n0")) for n in range(count + 1)]
    labels = [f":{random.choice(LABELS)}" if random.random() < 0.2 else "" for _ in names]
    bodies = [f"{named}{n if named else ''}{typed(random)}{random.choice(lengths or ('',))}" for n in range(count)]
    nodes = [f"({name}{label})" for name, label in zip(names, labels, strict=True)]
    return nodes, [(body, random.choice((">", "<", ""))) for body in bodies]


def typed(random: Random) -> str:
    """A relationship type, or none."""
    return random.choice(("", f":{random.choice(TYPES)}", ":" + "|".join(TYPES)))


# Laws.


def test_a_condition_its_negation_and_its_being_unknown_part_the_rows() -> None:
    for example in examples(1):
        patterns, scope = example.author.named_patterns()
        condition = example.author.predicate(scope)
        match, end = f"MATCH {patterns}", f"RETURN {keys(scope)}"
        whole = f"{match} {end}"
        parts = [f"{match} WHERE {text} {end}" for text in (condition, f"NOT ({condition})", f"({condition}) IS NULL")]
        example.check(example.bag(whole) == example.bag(*parts), whole, *parts)


def test_a_range_of_lengths_is_the_sum_of_its_lengths_in_whatever_pattern_it_stands() -> None:
    for example in examples(2):
        low = example.random.randint(0, 2)
        high, place = low + example.random.randint(0, 2), example.random.randint(0, 1)
        nodes, steps = by_chance(example.random, most=2)
        place = min(place, len(steps) - 1)

        def query(length: str, nodes: list[str] = nodes, steps: list[Step] = steps, place: int = place) -> str:
            changed = [(body + length, arrow) if n == place else (body, arrow) for n, (body, arrow) in enumerate(steps)]
            return f"MATCH p = {chain(nodes, changed)} RETURN [n IN nodes(p) | n.k], [r IN relationships(p) | r.k]"

        whole, parts = query(f"*{low}..{high}"), [query(f"*{n}") for n in range(low, high + 1)]
        example.check(example.bag(whole) == example.bag(*parts), whole, *parts)


def test_a_length_is_so_many_relationships_between_nodes_without_a_name() -> None:
    for example in examples(3):
        length = example.random.randint(1, 3)
        of, arrow, other = typed(example.random), example.random.choice((">", "<", "")), typed(example.random)
        around = example.random.choice(("", f", ()-[{other}]-(c)", ", (b)-->(a)", f", (a)-[{other}*0..1]->(b)"))
        short = f"MATCH {chain(['(a)', '(b)'], [(f'{of}*{length}', arrow)])}{around} RETURN a.k, b.k"
        long = f"MATCH {chain(['(a)', *['()'] * (length - 1), '(b)'], [(of, arrow)] * length)}{around} RETURN a.k, b.k"
        example.check(example.bag(short) == example.bag(long), short, long)


def test_a_trail_is_a_walk_that_uses_no_relationship_twice() -> None:
    """Two parts of a pattern against two clauses, which may share relationships, and a condition that says that they do not."""
    for example in examples(4):
        one, two = (chain(*by_chance(example.random, most=2, named=f"r{part}")) for part in (1, 2))
        rels = [f"r{part}{n}" for part, text in ((1, one), (2, two)) for n in range(2) if f"r{part}{n}" in text]
        apart = " AND ".join(f"{a} <> {b}" for n, a in enumerate(rels) for b in rels[n + 1 :]) or "true"
        end = f"RETURN {', '.join(f'{name}.k' for name in rels)}"
        together, separate = f"MATCH {one}, {two} {end}", f"MATCH {one} MATCH {two} WITH * WHERE {apart} {end}"
        example.check(example.bag(together) == example.bag(separate), together, separate)


def test_a_pattern_read_backwards_matches_the_same() -> None:
    for example in examples(5):
        nodes, steps = by_chance(example.random, "", "", "*1..2", "*0..1", "*2")
        names = sorted({node.strip("()").partition(":")[0] for node in nodes} - {""})
        end = f"RETURN {', '.join(f'{name}.k' for name in names) or 'count(*)'}"
        there, back = f"MATCH {chain(nodes, steps)} {end}", f"MATCH {backwards(nodes, steps)} {end}"
        example.check(example.bag(there) == example.bag(back), there, back)


def test_patterns_match_the_same_in_whatever_order_they_stand() -> None:
    for example in examples(6):
        one, two = (chain(*by_chance(example.random, "", "*0..2", most=2)) for _ in "12")
        first, second = f"MATCH {one}, {two} RETURN count(*)", f"MATCH {two}, {one} RETURN count(*)"
        example.check(example.bag(first) == example.bag(second), first, second)


def test_naming_a_bound_node_again_changes_nothing() -> None:
    for example in examples(7):
        patterns, scope = example.author.named_patterns()
        again, end = example.random.choice(scope.nodes), f"RETURN {keys(scope)}"
        queries = [
            f"MATCH {patterns} {end}",
            f"MATCH {patterns}, ({again}) {end}",
            f"MATCH ({again}), {patterns} {end}",
            f"MATCH {patterns} MATCH ({again}) {end}",
            f"MATCH ({again}) MATCH {patterns} {end}",
            f"MATCH {patterns} WITH * {end}",
        ]
        bags = [example.bag(query) for query in queries]
        example.check(all(bag == bags[0] for bag in bags), *queries)


def test_a_match_is_an_optional_match_whose_names_are_not_null() -> None:
    for example in examples(8):
        patterns, scope = example.author.named_patterns()
        where = f" WHERE {example.author.condition(scope)}" if example.random.random() < 0.5 else ""
        name, end = example.random.choice(scope.nodes), f"RETURN {keys(scope)}"
        plain = f"MATCH {patterns}{where} {end}"
        optional = f"OPTIONAL MATCH {patterns}{where} WITH * WHERE {name} IS NOT NULL {end}"
        example.check(example.bag(plain) == example.bag(optional), plain, optional)
        kept = f"UNWIND [1, 2] AS row OPTIONAL MATCH {patterns}{where} RETURN count(DISTINCT row)"
        example.check(example.rows(kept) == [form([2])], kept)


def test_a_limit_is_the_beginning_and_a_skip_the_rest_of_the_answer() -> None:
    for example in examples(9):
        patterns, scope = example.author.named_patterns()
        distinct = example.random.choice(("", "DISTINCT "))
        query = f"MATCH {patterns} RETURN {distinct}{keys(scope)}"
        if example.random.random() < 0.4:
            query += f" ORDER BY {scope.nodes[0]}.{'k' if distinct else 's'}"
        cut = example.random.randint(0, 5)
        whole = example.rows(query)
        example.check(example.rows(f"{query} LIMIT {cut}") == whole[:cut], query, f"LIMIT {cut}")
        example.check(example.rows(f"{query} SKIP {cut}") == whole[cut:], query, f"SKIP {cut}")
        example.check(example.rows(f"{query} SKIP {cut} LIMIT 2") == whole[cut : cut + 2], query, f"SKIP {cut} LIMIT 2")


def test_all_ways_to_ask_whether_and_how_often_a_pattern_matches_agree() -> None:
    for example in examples(10):
        arrow, body = example.random.choice((">", "<", "")), typed(example.random) + example.random.choice(("", "", "*1..2"))
        label = example.random.choice(("", f":{LABELS[0]}"))
        anonymous, named = (chain(["(n)", f"({name}{label})"], [(body, arrow)]) for name in ("", "m"))
        by_rows = f"MATCH (n) OPTIONAL MATCH {named} RETURN n.k, count(m), count(m) > 0"
        others = [
            f"MATCH (n) RETURN n.k, COUNT {{ {anonymous} }}, EXISTS {{ {anonymous} }}",
            f"MATCH (n) RETURN n.k, COUNT {{ MATCH {anonymous} RETURN 1 }}, EXISTS {{ MATCH {named} WHERE true }}",
            f"MATCH (n) RETURN n.k, size([{named} | m.k]), size(COLLECT {{ MATCH {anonymous} RETURN 1 }}) > 0",
            f"MATCH (n) CALL {{ WITH n MATCH {named} RETURN count(*) AS c }} RETURN n.k, c, c > 0",
        ]
        wanted = example.bag(by_rows)
        for query in others:
            example.check(example.bag(query) == wanted, by_rows, query)
        does, does_not = (f"MATCH (n) WHERE {no}{anonymous} RETURN n.k, COUNT {{ {anonymous} }}, {not no}" for no in ("", "NOT "))
        example.check(example.bag(does, does_not) == wanted, by_rows, does, does_not)


def test_grouping_keeps_every_row() -> None:
    for example in examples(11):
        patterns, scope = example.author.named_patterns()
        key = example.author.value(scope)
        queries = [
            f"MATCH {patterns} RETURN count(*)",
            f"MATCH {patterns} WITH {key} AS key, count(*) AS c RETURN sum(c)",
            f"MATCH {patterns} WITH {key} AS key, collect(1) AS ones RETURN sum(size(ones))",
            f"MATCH {patterns} WITH collect([{key}]) AS every UNWIND every AS one RETURN count(*)",
        ]
        answers = [example.rows(query) for query in queries]
        example.check(all(answer == answers[0] for answer in answers), *queries)
        distinct = f"MATCH {patterns} RETURN DISTINCT {key} AS key"
        grouped = f"MATCH {patterns} RETURN {key} AS key, count(*) AS c"
        example.check(len(example.rows(distinct)) == len(example.rows(grouped)), distinct, grouped)


def test_a_name_for_a_relationship_changes_nothing() -> None:
    for example in examples(13):
        query = example.author.query()
        example.check(example.bag(query.text) == example.bag(query.named), query.text, query.named)


def test_what_is_pushed_to_the_store_changes_no_answer_and_a_second_run_neither() -> None:
    for example in examples(12):
        query = example.author.query().text
        once = example.rows(query)
        example.check(len(once) < MOST_ROWS, query)
        example.check(once == example.rows(query), query)
        example.check(once == example.rows(query, pushdown=False), query)
