"""Numbers: a leaf is a normal distribution of every output, and predicts its mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from crisptree.targets.base import Target

if TYPE_CHECKING:
    from torch import Generator, Tensor

Doubles = npt.NDArray[np.float64]

SAME = 1e-12
"""Rows whose variance is below this share of that of all rows differ by rounding only."""

STRATA = 10
"""Rows are held out from so many parts of the range of y alike."""

MEMBERS_AT_ONCE = 2**26
"""Places times rows that are written down at once where sums are products; see ``sums_by_products``."""


@dataclass(frozen=True)
class Gaussians(Target):
    """y_n are numbers, (n, n_outputs), scaled to mean 0 and variance 1 over all rows; a leaf takes them as independent.

    A table is the means and then the variances; statistics are (Σ w, Σ w y, Σ w y²). As y is centred before, the
    variance does not drown in the square of the mean.

    Examples
    --------
    >>> import torch
    >>> one = Gaussians(2)
    >>> h, y = torch.tensor([[0.5], [0.5]]), torch.tensor([[-1.0], [1.0]])
    >>> one.statistics(h, y).tolist()
    [[1.0, 0.0, 1.0]]
    """

    name: ClassVar[str] = "gaussians"
    starts_at_node: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        """How many numbers a row has."""
        return self.n_values // 2

    @property
    def n_statistics(self) -> int:
        return 1 + self.n_values

    @property
    def fewest_leaves(self) -> int:
        return 2

    def evidence(self, tables: Tensor, y: Tensor, place: Tensor | None = None) -> Tensor:
        """log N(y_n; m_ℓ, v_ℓ), none too far below the highest of a row.  (n, n_leaves)"""
        from crisptree.equations.gaussian import DEEPEST_DOUBT, log_densities

        parts = tables.reshape(len(tables), -1, 2, self.n_outputs)
        leaves = parts[:, 0] if place is None else parts[:, place].transpose(0, 1)
        logs = log_densities(y.to(tables)[:, None], leaves[..., 0, :], leaves[..., 1, :])
        return logs.maximum(logs.max(dim=1, keepdim=True).values - DEEPEST_DOUBT)

    def statistics(self, responsibilities: Tensor, y: Tensor, place: Tensor | None = None, n_places: int = 1) -> Tensor:
        each = self._each(y.to(responsibilities))
        if place is None:
            return responsibilities.T @ each
        sums = self._sums(each, responsibilities, place, n_places)
        return sums.transpose(0, 1).reshape(responsibilities.shape[1], -1)

    def update(self, statistics: Tensor, previous: Tensor, prior: float = 0.0) -> Tensor:
        """m_ℓ = Σ h y / Σ h, v_ℓ = Σ h y² / Σ h − m_ℓ², the latter no smaller than a share of that of all rows."""
        import torch

        from crisptree.equations.gaussian import SMALLEST_VARIANCE, mean_and_variance

        mean, variance = mean_and_variance(*self._parts(statistics.double()), prior)
        tables = torch.cat([mean, variance.clamp_min(SMALLEST_VARIANCE)], dim=1)
        return tables.to(previous).where(statistics[:, :1] > 0, previous)

    def drawn_together(self, tables: Tensor, statistics: Tensor) -> Tensor:
        """Every variance half its own and half that of all leaves together; see ``equations.gaussian``."""
        import torch

        from crisptree.equations.gaussian import drawn_variance

        mean, variance = tables[..., : self.n_outputs], tables[..., self.n_outputs :]
        return torch.cat([mean, drawn_variance(variance, statistics[..., :1].to(tables))], dim=-1)

    def random_tables(self, n: int, generator: Generator) -> Tensor:
        """Means as far apart as those of rows, and the variance of all of them."""
        import torch

        mean = torch.randn(n, self.n_outputs, generator=generator)
        return torch.cat([mean, torch.ones_like(mean)], dim=1)

    def stump_tables(self, tables: Tensor, statistics: Tensor) -> Tensor:
        """The two leaves of a stump stand on both sides of its rows' mean, a spread away in a random direction.

        (2, m, n_values), (m, n_statistics) → (2, m, n_values). Random means would be far from the rows of a deep node.
        """
        import torch

        from crisptree.equations.gaussian import SMALLEST_VARIANCE, mean_and_variance

        mean, variance = mean_and_variance(*self._parts(statistics.double()), 0.0)
        variance = variance.clamp_min(SMALLEST_VARIANCE)
        apart = tables[1, :, : self.n_outputs] - tables[0, :, : self.n_outputs]
        apart = apart / apart.square().mean(dim=1, keepdim=True).sqrt().clamp_min(1e-30)
        away = apart.to(variance) * variance.sqrt()
        return torch.stack([torch.cat([mean + side * away, variance], dim=1) for side in (-1, 1)]).to(tables)

    def tally(self, y: Any, weight: Any, place: Any, n_places: int) -> Any:
        """Sums of 1, y and y²."""
        if isinstance(weight, np.ndarray):
            each = weight[:, None] * self._each(y)
            return np.stack([np.bincount(place, column, n_places) for column in each.T], axis=1)
        return self._sums(self._each(y.to(weight)), weight, place, n_places)

    def _sums(self, each: Tensor, weight: Tensor, place: Tensor, n_places: int) -> Tensor:
        """(b, n_statistics), (b, …), (b,) → (n_places, …, n_statistics)"""
        weighted = weight[..., None] * each.reshape(len(each), *[1] * (weight.dim() - 1), self.n_statistics)
        if weight.is_cuda:
            return sums_by_products(weighted, place, n_places)
        return weight.new_zeros(n_places, *weighted.shape[1:]).index_add_(0, place, weighted)

    def _each(self, y: Any) -> Any:
        """What every row adds: 1, y and y².  (b, n_outputs) → (b, n_statistics)"""
        if isinstance(y, np.ndarray):
            return np.concatenate([np.ones((len(y), 1)), y, y * y], axis=1)
        import torch

        return torch.cat([torch.ones_like(y[:, :1]), y, y * y], dim=1)

    def _parts(self, statistics: Any) -> tuple[Any, Any, Any]:
        k = self.n_outputs
        return statistics[..., :1], statistics[..., 1 : k + 1], statistics[..., k + 1 :]

    def agreement(self, predicted: Any, y: Any) -> Any:
        """1 − the squared error, in the mean over outputs: as y has variance 1, the mean over rows is about R²."""
        return 1 - ((predicted - y) ** 2).mean(-1)

    def loss(self, tables: Doubles, statistics: Doubles) -> float:
        """The squared error of rows that reach the leaves."""
        from crisptree.equations.gaussian import squared_error

        return float(squared_error(*self._parts(statistics), tables[:, : self.n_outputs]).sum())

    def strata(self, y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Which part of its range the first output is in, parts of about as many rows each."""
        first = y[:, 0]
        edges = np.unique(np.quantile(first, np.arange(1, STRATA) / STRATA))
        return np.unique(np.searchsorted(edges, first, side="left"), return_inverse=True)[1].astype(np.int64)

    def weight(self, statistics: Doubles) -> Doubles:
        return statistics[..., 0]

    def impurity(self, statistics: Doubles) -> Doubles:
        """N times the variance, in the mean over outputs: the squared error of the best constant."""
        weight, sums, squares = self._parts(statistics)
        within = squares - sums * sums / np.maximum(weight, np.finfo(float).tiny)
        return np.asarray(np.maximum(within, 0.0).mean(axis=-1))

    def is_mixed(self, statistics: Doubles) -> npt.NDArray[np.bool_]:
        return np.asarray(self.impurity(statistics) > SAME * self.weight(statistics))

    def tables(self, statistics: Doubles, prior: float = 0.0) -> Doubles:
        """Means and variances of the rows, with ``prior`` rows more that are spread like all of them."""
        from crisptree.equations.gaussian import SMALLEST_VARIANCE, mean_and_variance

        weight, sums, squares = self._parts(statistics)
        mean, variance = mean_and_variance(np.maximum(weight, np.finfo(float).tiny), sums, squares, prior)
        return np.concatenate([mean, np.maximum(variance, SMALLEST_VARIANCE)], axis=1)

    def answers(self, tables: Any) -> Any:
        """The means.  (m, n_outputs)"""
        return tables[:, : self.n_outputs]

    def agreements(self, tables: Doubles, statistics: Doubles) -> Doubles:
        """The weight of the rows less their squared error, in the mean over outputs."""
        from crisptree.equations.gaussian import squared_error

        wrong = squared_error(*self._parts(statistics), self.answers(tables)) / self.n_outputs
        return np.asarray(self.weight(statistics) - wrong)

    def told(self, tables: Doubles) -> Doubles:
        """The means."""
        return tables[:, : self.n_outputs]

    def in_units(self, tables: Doubles, center: Doubles, unit: Doubles) -> Doubles:
        """The means times the unit plus the center, and the variances times its square."""
        mean, variance = tables[:, : self.n_outputs], tables[:, self.n_outputs :]
        with np.errstate(under="ignore"):  # the square of a tiny spread is 0
            return np.concatenate([mean * unit + center, variance * unit**2], axis=1)

    def check(self, tables: Doubles) -> str | None:
        if tables.shape[1] % 2 or (tables[:, self.n_outputs :] < 0).any():
            return "not means and variances"
        return None


def sums_by_products(values: Tensor, place: Tensor, n_places: int) -> Tensor:
    """The values added up place by place, in one order. On CUDA ``index_add_`` has none, and two fits could differ.

    (b, …), (b,) → (n_places, …)
    """
    import torch

    numbers = torch.arange(n_places, device=place.device)[:, None]
    each, at_once = values.flatten(1), max(1, MEMBERS_AT_ONCE // n_places)
    sums = values.new_zeros(n_places, each.shape[1])
    for some, there in zip(each.split(at_once), place.split(at_once), strict=True):
        sums += (there == numbers).to(values) @ some
    return sums.reshape(n_places, *values.shape[1:])
