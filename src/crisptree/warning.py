"""The one class of all warnings that the library gives."""


class CrispTreeWarning(UserWarning):
    """Something odd that the caller may want to change; training went on."""
