"""Build the kernels of the CUDA engine ahead of their first launch, in the background."""

from __future__ import annotations

import logging
import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import torch

from crisptree.exceptions import CrispTreeWarning
from crisptree.learning.engines.cuda_graphs import launching
from crisptree.learning.options import Plan
from crisptree.targets import Gaussians, Target
from crisptree.threads import workers

kernels: Any
try:
    kernels = import_module("crisptree.learning.engines.cuda_kernels")
except ImportError:  # Triton comes with torch on the systems that have CUDA
    kernels = None

CONSTANTS: dict[str, dict[str, int]] = (
    {
        "stump_tasks": {"ROWS": kernels.ROWS_PER_TASK, "num_warps": kernels.WARPS_OF_TASKS},
        "move_stumps": {"FEATURES": kernels.FEATURES_AT_ONCE, "TASKS": kernels.TASKS_AT_ONCE},
        "route": {"NODES": kernels.NODES_AT_ONCE},
    }
    if kernels is not None
    else {}
)
"""Constants of kernels that do not depend on the training."""

IS_RECENT = kernels is not None and tuple(map(int, kernels.triton.__version__.split(".")[:2])) >= (3, 5)
"""Later versions of Triton are meant to build kernels in several threads, and let a kernel begin beside the last."""

VALUES_OF_COUNTS = 4096
"""Leaf counts that a kernel adds up at once."""

logger = logging.getLogger("crisptree")

MIN_BUILD_SECONDS = 0.1
"""Seconds of the smallest kernel above which Triton's cache is taken to be empty."""

TYPES: dict[str, str] = {
    **dict.fromkeys(("order", "task_group", "task_begin", "task_rows", "group_tasks", "group_start"), "int64"),
    **dict.fromkeys(("level_splits", "left_node", "right_node", "splits", "slots", "starts", "ends", "sums"), "int64"),
    **dict.fromkeys(("task_is_first", "steps", "moving", "reached", "level_start"), "int32"),
    **dict.fromkeys(("units",), "float64"),
    "largest_number": "int64",
}
"""Types of the tensors of all kernels; others have the type of the rows."""

NUMBERS = {"first_task", "width", "n_cells", "begin", "step", "before_at", "score_width", "n_slots", "n_leaves"}
NUMBERS |= {"n_levels", "first_split", "first_slot", "height", "line", "channels", "n_parts"}
"""Arguments that are numbers."""


BUILT_AHEAD = ("stump_tasks", "move_stumps", "stump_counts", "damp", "route", "move_splits")
"""Kernels of every training."""


def block_of(width: int) -> int:
    """Return the smallest power of two that is not below a width, the length of an array of the kernels."""
    return 1 << (width - 1).bit_length()


def row_block_of(n_features: int) -> int:
    """Return how many features of a row the kernels read at once."""
    return min(kernels.FEATURES_OF_ROWS, max(16, block_of(n_features)))


def tasks_per_count(block: int) -> int:
    """Return how many tasks' counts of such a length the kernels add up at once."""
    return max(16, VALUES_OF_COUNTS // block)


class KernelKey(NamedTuple):
    """What the code of the kernels depends on."""

    device: torch.device
    dtype: torch.dtype
    y: torch.dtype
    n_features: int
    constants: tuple[tuple[str, Any], ...]

    @classmethod
    def of(
        cls, device: torch.device, target: Target, n_features: int, plan: Plan, dtype: torch.dtype, *, fresh: bool
    ) -> KernelKey:
        n_outputs = target.n_outputs if isinstance(target, Gaussians) else 0
        constants = {
            "FRESH": fresh,
            "OUTPUTS": n_outputs,
            "SPATIAL": bool(plan.spatial_penalty and plan.image_shape is not None),
            "WIDTH": block_of(target.n_statistics),
            "TASKS": tasks_per_count(block_of(target.n_statistics)),
            "ROW_BLOCK": row_block_of(n_features),
        }
        return cls(device, dtype, dtype if n_outputs else torch.int64, n_features, tuple(constants.items()))


@cache
def overlap_options(device: torch.device) -> dict[str, bool]:
    """Return the options by which a kernel begins beside the one before, where the device and Triton can."""
    can_overlap = device.type == "cuda" and IS_RECENT and torch.cuda.get_device_capability(device) >= (9, 0)
    return {"OVERLAPS": True, "launch_pdl": True} if can_overlap else {"OVERLAPS": False}


def _build(name: str, key: KernelKey) -> None:
    """Build a kernel and its launcher without running it; those that are there already are taken as they are."""
    kernel, constants = getattr(kernels, name), dict(key.constants)
    known = {"y": key.y, "n_features": key.n_features, "FEATURES": constants["ROW_BLOCK"]}
    known |= {"IN_UNITS": False} | constants | overlap_options(key.device) | CONSTANTS.get(name, {})
    arguments = []
    for argument in kernel.arg_names:
        number, tensor = (2 if argument in NUMBERS else None), TYPES.get(argument)
        default = number or (getattr(torch, tensor) if tensor else key.dtype)
        arguments.append(known.get(argument, default))
    names = ("num_warps", "launch_pdl") if "OVERLAPS" in kernel.arg_names else ("num_warps",)
    built = kernel.warmup(*arguments, grid=(1,), **{name: known[name] for name in names if name in known})
    getattr(built, "run", None)  # which compiles the launcher


@cache
def _builder() -> ThreadPoolExecutor:
    """Return the thread that builds kernels while the fit prepares its rows."""
    return ThreadPoolExecutor(1, "crisptree-build")


def _try_triton(device: torch.device) -> Exception | None:
    memory, started = torch.zeros(1, device=device), time.perf_counter()
    try:
        with torch.cuda.device(device):
            kernels.do_nothing[(1,)](memory)
    except Exception as error:
        return error
    if time.perf_counter() - started > MIN_BUILD_SECONDS:
        logger.warning(
            "Kernels are built for this device, so the first fit takes some seconds more. Triton keeps them "
            "(in ~/.triton/cache, or where TRITON_CACHE_DIR says): later fits and processes find them there."
        )
    return None


@cache
def _triton_trial(device: torch.device) -> Future[Exception | None]:
    return _builder().submit(_try_triton, device)


@cache
def triton_works(device: torch.device) -> bool:
    """Return True if Triton can build a kernel, for which it needs a C compiler and a recent device."""
    if kernels is None:
        return False
    error = _triton_trial(device).result()
    if error is not None:
        warnings.warn(
            f"Triton must be able to build kernels for quick training on CUDA, and cannot here ({error}). The slower "
            "steps of torch do the same; a C compiler and Python's headers are what is missing most often.",
            CrispTreeWarning,
            stacklevel=2,
        )
    return error is None


def start_building(device: torch.device, key: KernelKey | None = None) -> None:
    """Begin to build kernels in the background, or to prepare for it as long as it is not known which."""
    if device.type == "cuda" and kernels is not None and IS_RECENT and torch.cuda.is_available():
        device = torch.empty(0, device=device).device  # with its number
        _triton_trial(device)
        if key is not None:
            _build_all(key._replace(device=device))


@cache
def _build_all(key: KernelKey) -> Future[None]:
    """Build the kernels of both phases side by side, the first time that rows of this kind train."""

    def build(name: str) -> None:
        with torch.cuda.device(key.device), suppress(Exception):  # the launch will say what is wrong
            _build(name, key)

    def build_all() -> None:
        with launching, workers(len(BUILT_AHEAD) if IS_RECENT else 1) as each_of:
            list(each_of(build, BUILT_AHEAD))

    return _builder().submit(build_all)


def build_kernels(key: KernelKey) -> None:
    """Wait for kernels, and build them where that has not begun."""
    if key.device.type == "cuda":
        _build_all(key).result()
