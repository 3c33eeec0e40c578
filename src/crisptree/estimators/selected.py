"""Model selection as estimators offer it: its results, simpler models that score nearly the same, the paper's grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from crisptree.parameters.estimators import PAPER, PAPER_EPOCHS, check_argument
from crisptree.parameters.training import TrainingOptions
from crisptree.selection.candidates import list_changes
from crisptree.typing import ArrayLike, MatrixLike

if TYPE_CHECKING:
    from crisptree.inference import CrispTree
    from crisptree.selection.candidates import Trial


class SelectionResults:
    """Mixin of estimators that select parameters which are "auto"."""

    best_params_: dict[str, Any]
    cv_results_: list[Trial]

    if TYPE_CHECKING:
        image_shape_: tuple[int, ...] | None

        def _named_trees(self) -> dict[str, CrispTree]: ...

        def training_parameters(self) -> dict[str, Any]: ...

    @property
    def n_candidates_(self) -> int:
        """Number of candidates that were trained; as ``max_candidates`` it repeats a fit with a time budget."""
        check_is_fitted(self)
        return max((trial.candidate for trial in self.cv_results_), default=0)

    def simplest_within(self, points: float = 0.5) -> Self:
        """Return an unfitted estimator with the parameters of the simplest candidate that scores nearly as the best.

        The simplest one has the smallest product of leaves and non-zero weights, those of linear leaves included. Its
        parameters are set, so that the fit selects nothing. Where thresholds and hyperplanes alternate in a forest, a
        depth that was selected for hyperplanes limits the thresholds, too.

        Parameters
        ----------
        points : float, default=0.5
            How much lower the held-out score may be than the best one: percentage points of accuracy, or hundredths of
            R² or of another ``scoring``.

        Returns
        -------
        estimator
            A clone to fit.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = CrispTreeClassifier(leaf_model="constant", random_state=0).fit(X, y)
        >>> simple = model.simplest_within(points=3).fit(X, y)
        >>> simple.get_n_leaves() <= model.get_n_leaves(), bool(simple.score(X, y) > 0.9)
        (True, True)
        """
        check_is_fitted(self)
        check_argument("points", points)
        trials = getattr(self, "cv_results_", [])
        if not trials:
            raise ValueError(
                "simplest_within needs the candidates of model selection; this model has none: all parameters were "
                "given, there were too few rows, or it was loaded from a file, which lacks them."
            )
        from crisptree.selection.candidates import find_simplest

        values = find_simplest(trials, points / 100).values
        if values.items() <= self.best_params_.items():
            values = self.best_params_  # which has the shrinkage, too
        target = next(iter(self._named_trees().values())).target.name
        changes = list_changes(self.training_parameters(), values, target, self.image_shape_)
        options = {name: f"training__{name}" for name in TrainingOptions.PARAMETERS}
        unfitted: Self = clone(self).set_params(**{options.get(name, name): changes[name] for name in changes})
        return unfitted


class PaperProtocol:
    """Mixin of estimators that train by the paper's protocol."""

    validation_scores_: dict[int, float]

    if TYPE_CHECKING:

        @classmethod
        def from_flat(cls, **values: Any) -> Self: ...

        def fit(self, X: MatrixLike, y: ArrayLike) -> Self: ...

        def score(self, X: MatrixLike, y: ArrayLike) -> float: ...

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Make an estimator with the paper's training: EM, Adam with batches of 1000 rows, γ = 1 + 0.1 per epoch.

        There is no regularisation; ``spatial_penalty`` is the one λ of equation 15, for every split and in growth and
        finetuning alike. λ counts against the mean of the log-likelihood over rows, the paper's against the sum.
        ``mass_threshold`` stays at 1e-3, which has the accuracy of exact steps in a fraction of the time
        (docs/results/training-speed.md); ``paper(mass_threshold=0)`` takes exact steps. docs/paper-to-code.md lists
        what the paper leaves open and how it is decided here, such as γ at the start of finetuning.

        Examples
        --------
        >>> from crisptree import CrispTreeClassifier
        >>> CrispTreeClassifier.paper(max_depth=4, epochs=20, finetune_epochs=20).training.batch_size
        1000
        """
        return cls.from_flat(**{**PAPER, **changes})

    @classmethod
    def fit_paper(
        cls,
        X: MatrixLike,
        y: ArrayLike,
        eval_set: tuple[MatrixLike, ArrayLike] | None = None,
        *,
        epochs: Sequence[int] = PAPER_EPOCHS,
        **changes: Any,
    ) -> Self:
        """Fit ``paper(**changes)`` with the number of epochs that is best on validation rows, as in section 4.1.

        Parameters
        ----------
        X, y
            Training rows, as in ``fit``.
        eval_set : (X, y), default=None
            Validation rows. None draws a fifth of the training rows at random for the selection, and fits the result
            on all of them; with validation rows of its own the result is fitted on X alone.
        epochs : sequence of int, default=(20, 35, 50, 65)
            Candidates, each the epochs of growth and of finetuning. The fewest of equal scores are selected.
        **changes
            Parameters as in ``paper``. ``random_state`` also draws the validation rows.

        Returns
        -------
        estimator
            Fitted; its ``validation_scores_`` are the scores of the deterministic trees by number of epochs.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CrispTreeClassifier.fit_paper(X, y, epochs=(2, 4), max_depth=2, batch_size=10, random_state=0)
        >>> sorted(model.validation_scores_), model.training.epochs == model.training.finetune_epochs
        ([2, 4], True)
        """
        if not len(epochs):
            raise ValueError("`epochs` must hold at least one number of epochs; got none.")
        rows, held_out = (X, y), eval_set
        if held_out is None:
            from sklearn.model_selection import train_test_split

            seed = changes.get("random_state")
            *parts, y_train, y_valid = train_test_split(X, y, test_size=0.2, random_state=seed)
            rows, held_out = (parts[0], y_train), (parts[1], y_valid)
        models = {
            number: cls.paper(**changes | {"epochs": number, "finetune_epochs": number}).fit(*rows)
            for number in sorted(epochs)
        }
        scores = {number: model.score(*held_out) for number, model in models.items()}
        best = models[max(scores, key=lambda number: (scores[number], -number))]
        if eval_set is None:
            best = clone(best).fit(X, y)
        best.validation_scores_ = scores
        return best
