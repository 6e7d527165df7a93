"""The served form: the commit protocol over DynamoDB, a graph server and a vector index, and all ports of it together."""
