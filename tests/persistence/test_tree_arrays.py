"""Which arrays a dataclass has, read off its annotations."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pytest

from crisptree.persistence.trees import arrays_of


@dataclass(frozen=True)
class OfAliases:
    """``list`` stands for NDArray where that is an alias of its own, with the scalar type as its only argument."""

    weights: Annotated[list[np.float32], "splits"]
    sizes: Annotated[npt.NDArray[np.int64], "nodes"]
    perhaps: Annotated[list[np.float64], "nodes"] | None = None


@dataclass(frozen=True)
class Bare:
    values: list[int]


def test_an_array_has_the_scalar_type_of_its_annotation():
    found = arrays_of(OfAliases([1.5, 2], np.array([3]), [4.0]))
    assert {name: array.dtype for name, array in found.items()} == {
        "weights": np.float32,
        "sizes": np.int64,
        "perhaps": np.float64,
    }


def test_a_field_without_dimensions_is_rejected_by_name():
    with pytest.raises(TypeError, match="'values'"):
        arrays_of(Bare([1]))
