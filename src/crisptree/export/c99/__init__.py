"""C99 for anything that has a compiler: one header without dependencies."""
