"""embed: texts in, vectors out; the one function that carries the embedding model. For functions of this deployment alone."""

from pulse_kg.lambda_edge.embedding import embed_function

handler = embed_function()
