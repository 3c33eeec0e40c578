"""Growth of a baseline through the depths of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from experiments import methods
from experiments.cells import Cell
from experiments.configs import Baselines
from experiments.methods import DEFAULT_BOUND, Bounded
from experiments.session import Session
from experiments.trees import Grown, TimeCapReached, at_most, grow, grow_on


class Growth(NamedTuple):
    """One growing tree: a baseline's, with a seed and, for CO2, a ν."""

    name: str
    seed: int
    bounded: Bounded = DEFAULT_BOUND


class Along(NamedTuple):
    """Trees of a data set that grow deeper at every step of its configuration."""

    session: Session
    baselines: Baselines

    def __call__(
        self,
        growth: Growth,
        part: str,
        open_cells: list[Cell],
        train: Callable[[Cell, Grown], None],
        give_up: Callable[[Cell], None],
    ) -> None:
        """Grow to the depth of each open cell in turn; from the first that takes too long on, give up."""
        left = list(open_cells)
        try:
            for depth, grown in self._steps(growth, part, [cell.depth for cell in open_cells]):
                if left and left[0].depth == depth:
                    train(left[0], grown)
                    del left[0]
        except TimeCapReached:
            for cell in left:
                give_up(cell)

    def config(self, model: Any, name: str, depth: int, part: str = "all") -> dict[str, Any]:
        """Return the identity of a result."""
        more = {"search": methods.SEARCHES[name]} if name in methods.SEARCHES else {}
        steps = [step for step in self.session.config.depths if step <= depth]
        return self.session.describe(model, part, steps=steps, **more)

    def _steps(self, growth: Growth, part: str, depths: list[int]) -> Iterator[tuple[int, Grown]]:
        """Grow one tree as deep as needed, from the deepest stored one."""
        session, (name, seed, bounded) = self.session, growth
        steps = [depth for depth in session.config.depths if depths and depth <= depths[-1]]
        rows, cap = session.rows(part), session.cap(self.baselines.time_cap)
        models = {depth: methods.baseline(name, depth, self.baselines.epochs, seed, bounded) for depth in steps}
        more = {"seed": seed, "commit": session.commit}
        keys = {depth: self.config(model, name, depth, part) | more for depth, model in models.items()}
        kept = {depth: session.shelf.get(key) for depth, key in keys.items()}
        needed = [depth for depth in steps if depth >= max((d for d in steps if kept[d] and d <= depths[0]), default=0)]
        grown = None
        for depth in needed:
            if (found := kept[depth]) is not None:
                found.model.set_params(training__grow=models[depth].training.grow, training__device=session.device)
                grown = found
            elif grown is None:
                more_words = f", nu {bounded}" if name == "co2" else ""
                session.progress.say(f"{session.config.data}: growing {name}, seed {seed}{more_words}")
                with at_most(cap):
                    grown = grow(models[depth].set_params(training__device=session.device), rows)
            else:
                grown = grow_on(grown, depth, _step_seed(seed, depth), rows, cap)
            if kept[depth] is None:
                session.shelf.put(keys[depth], grown)
            yield depth, grown


def _step_seed(seed: int, depth: int) -> int:
    """Another stream of random numbers for every step, or each would begin with the same directions."""
    return int(np.random.SeedSequence([seed, depth]).generate_state(1)[0] // 2)
