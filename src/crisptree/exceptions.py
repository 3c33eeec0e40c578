"""Warnings and errors of the library that need nothing else of it."""


class CrispTreeWarning(UserWarning):
    """Unusual input or settings that the caller may want to change; training went on."""


class CheckpointError(ValueError):
    """A checkpoint that is damaged, that belongs to another fit, or that cannot be written."""
