"""``qagate decide``: a verdict over two results of another tool."""
