"""Embedders: ONNX (the default), sentence-transformers (the reference), hashing (tests)."""
