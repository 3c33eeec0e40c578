"""``python -m crisptree`` is the ``crisptree`` command."""

from crisptree.cli import main

if __name__ == "__main__":
    main()
