"""What a fit learns of y: the contract between estimators, which are given y, and training, which is given numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from crisptree.targets.base import Target

if TYPE_CHECKING:
    from crisptree.inference.statistics import SomeTree

Doubles = npt.NDArray[np.float64]


class TargetInput(NamedTuple):
    """y as it was passed, checked as far as that can be done before X is.

    ``classes`` are those of the columns where y are probabilities; ``source`` says which row a row is a copy of.
    """

    y: Any
    is_multi_output: bool = False
    classes: npt.NDArray[Any] | None = None
    source: npt.NDArray[np.intp] | None = None


class EncodedTarget(NamedTuple):
    """y and weights of the rows that train, which rows these are, and the encoding."""

    encoding: TargetEncoding
    y: npt.NDArray[Any]
    weight: Doubles
    kept: npt.NDArray[np.bool_]


class Reduction(Protocol):
    """Sums and maxima over the shards of all processes."""

    def total(self, parts: Sequence[Any], shape: tuple[int, ...] = ()) -> Doubles: ...

    def maximum(self, values: Doubles) -> Doubles: ...


class Rows(Protocol):
    """Rows with y and weights."""

    @property
    def y(self) -> npt.NDArray[Any]: ...

    @property
    def weight(self) -> Doubles: ...


class TargetStatistics(ABC):
    """Statistics of y that are updated batch by batch, in the first of several passes over the same rows."""

    n_rows: int
    """Rows that train, known once all batches have been added."""

    checksum: npt.NDArray[Any]
    """``rows_checksum`` of all rows of the first pass, known once all batches have been added."""

    @abstractmethod
    def add(self, y: npt.NDArray[Any], weight: Doubles, name: str) -> Doubles:
        """Add a batch, which errors call ``name``; return its weights as far as they are known."""

    @abstractmethod
    def learn(self, name: str) -> tuple[TargetEncoding, Doubles]:
        """Learn the encoding, and the target's statistics of all rows."""

    @abstractmethod
    def rows_checksum(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Compute numbers that add up over rows in any order and tell whether a pass had the rows of the first."""

    @abstractmethod
    def describe_checksum(self, checksum: npt.NDArray[Any]) -> str:
        """Describe such numbers in an error message."""


class TargetEncoding(ABC):
    """How the y of a fit becomes what trees are trained on, learned from an array, from batches or by a process group.

    An estimator names its encoding in ``ENCODING`` and knows no more of y.
    """

    classes: npt.NDArray[Any] | None = None

    @property
    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """The fitted attributes of an estimator that say what y is."""

    @abstractmethod
    def target_of(self, y: npt.NDArray[Any]) -> Target:
        """The target of encoded y."""

    @classmethod
    @abstractmethod
    def of_fitted(cls, attributes: Mapping[str, Any], tree: Any) -> Self:
        """The encoding of a fitted estimator, from its attributes and a tree of it."""

    @classmethod
    @abstractmethod
    def read(cls, y: Any) -> TargetInput:
        """Check y as a user passes it, before it is made an array beside X."""

    @classmethod
    @abstractmethod
    def check(cls, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Check an array of y that is encoded later."""

    @classmethod
    @abstractmethod
    def learn(
        cls,
        given: TargetInput,
        y: npt.NDArray[Any],
        weight: Doubles,
        parameters: Any,
        earlier: Self | None = None,
        *,
        is_part: bool = False,
    ) -> EncodedTarget:
        """Encode the y of a fit. Rows of weight zero are left out before anything is learned.

        ``earlier`` is the encoding of a fitted tree that is to be trained further; with ``is_part``, y may lack some of
        its classes.
        """

    @abstractmethod
    def encode_validation(self, y: Any, name: str | None = None, *, may_be_soft: bool = False) -> npt.NDArray[Any]:
        """Encode the y of validation rows, which errors call ``name``."""

    @classmethod
    @abstractmethod
    def statistics(cls, parameters: Mapping[str, Any]) -> TargetStatistics:
        """Begin to learn from batches."""

    @classmethod
    @abstractmethod
    def summarize(cls, y: npt.NDArray[Any]) -> Any:
        """Summarize the y of one process for ``merge``."""

    @classmethod
    @abstractmethod
    def merge(cls, summaries: Sequence[Any]) -> Self:
        """Merge the summaries of all processes into an encoding that knows neither weights nor scale yet."""

    @abstractmethod
    def as_numbers(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Numbers that can be sent to another process, for ``encode``."""

    @abstractmethod
    def reduce(self, parts: Sequence[Rows], reduction: Reduction, parameters: Mapping[str, Any]) -> Self:
        """Learn weights or scale from the rows of all processes; ``parts`` are the shards of this one, as numbers."""

    @abstractmethod
    def no_rows(self) -> npt.NDArray[Any]:
        """Encoded y of no rows."""

    @abstractmethod
    def encode(self, numbers: npt.NDArray[Any], weight: Doubles) -> tuple[npt.NDArray[Any], Doubles]:
        """Encode ``as_numbers`` of rows that the encoding was learned from; rows that do not train get weight 0."""

    def scale_predictions(self, predictions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Predictions in units of y, as encoded y has them."""
        return predictions

    def restore_units(self, tree: SomeTree) -> SomeTree:
        """The tree that predicts in the units of y."""
        return tree
