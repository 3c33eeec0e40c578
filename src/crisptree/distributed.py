"""Process groups of torch: whether a fit is distributed, and its errors.

Inside an initialised process group, ``fit`` of a single tree takes the rows of its process, and all processes return
the same tree; see docs/guide/large-data.md. Free of torch: a single process does not import it.
"""

from crisptree.exceptions import ProcessGroupError
from crisptree.threads import is_distributed, single_process

__all__ = ["ProcessGroupError", "is_distributed", "single_process"]
