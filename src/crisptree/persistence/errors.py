"""What may be wrong with a model file."""


class ModelFileError(ValueError):
    """A file that is not a whole and sound model; the message says what is wrong with it."""
