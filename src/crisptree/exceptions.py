"""Warning classes of the library."""


class CrispTreeWarning(UserWarning):
    """Unusual input or settings that the caller may want to change; training went on."""
