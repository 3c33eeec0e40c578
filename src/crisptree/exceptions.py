"""Warnings and errors of the library that need nothing else of it."""


class CrispTreeWarning(UserWarning):
    """Unusual input or settings that the caller may want to change; training went on.

    Examples
    --------
    >>> import warnings
    >>> from crisptree import CrispTreeWarning
    >>> warnings.filterwarnings("ignore", category=CrispTreeWarning)  # no warnings of this library
    >>> warnings.resetwarnings()
    """


class CheckpointError(ValueError):
    """A checkpoint that is damaged, that belongs to another fit, or that cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CheckpointError, CrispTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "max_depth": 1}
    >>> folder = Path(tempfile.mkdtemp()) / "checkpoint"
    >>> model = CrispTreeClassifier(**fixed).fit(X, y, checkpoint=folder)
    >>> try:
    ...     model.fit(X, y, checkpoint=folder)
    ... except CheckpointError:
    ...     print("The folder holds a checkpoint, and resume=False.")
    The folder holds a checkpoint, and resume=False.
    """


class ProcessGroupError(RuntimeError):
    """A process of the group has died, does not respond, or has other arguments than the others.

    Examples
    --------
    The rows of the other processes are lost with it, so nothing can be trained further. Started again by ``torchrun``,
    the processes continue from the last checkpoint.

    >>> from crisptree.distributed import ProcessGroupError
    >>> issubclass(ProcessGroupError, RuntimeError)
    True
    """
