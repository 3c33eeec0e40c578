"""What may be wrong with the files of a data set."""


class DataNotFoundError(FileNotFoundError):
    """A data set is in none of the folders where it is looked for."""


class DataFormatError(ValueError):
    """A file is there but is damaged, or holds other data than its name says."""
