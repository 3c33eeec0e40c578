"""Process groups of torch: whether a fit is distributed, and its errors.

Inside an initialised process group, ``fit`` of a single tree takes the rows of its process, and all processes return
the same tree; see docs/guide/large-data.md. Free of torch: a single process does not import it.
"""

from crisptree.threads import is_distributed, single_process

__all__ = ["ProcessGroupError", "is_distributed", "single_process"]


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
