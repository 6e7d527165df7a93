"""A read-only openCypher over one board: lexer, parser, semantic pass, planner and evaluator over the `GraphSource` port."""
