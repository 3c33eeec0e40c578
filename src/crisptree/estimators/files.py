"""Estimators to files and back."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from crisptree.inference import FlatTree

if TYPE_CHECKING:
    from crisptree.estimators.classifier import CrispTreeClassifier

SECTIONS = {"estimator", "tree", "greedy"}


def save(estimator: CrispTreeClassifier, path: str | PathLike[str]) -> None:
    """Write a fitted classifier with linear splits."""
    from crisptree.export.model_file import ModelFile, tree_arrays, write

    if not isinstance(estimator.tree_, FlatTree) or not isinstance(estimator.greedy_tree_, FlatTree):
        raise TypeError("a tree with split modules cannot be saved to a model file yet; pickle it instead.")
    names = getattr(estimator, "feature_names_in_", None)
    parameters = {name: value for name, value in estimator.get_params(deep=False).items() if _is_plain(value)}
    sections: dict[str, Any] = {
        "estimator": {
            "class": type(estimator).__name__,
            "parameters": parameters,
            "classes": _labels_to_json(estimator.classes_),
            "feature_names": None if names is None else [str(name) for name in names],
        },
        "tree": {},
        "greedy": {},
    }
    arrays = tree_arrays(estimator.tree_, "tree") | tree_arrays(estimator.greedy_tree_, "greedy")
    write(path, ModelFile(sections, arrays))


def load(path: str | PathLike[str]) -> CrispTreeClassifier:
    """Read an estimator that ``save`` wrote; it predicts as before, bit for bit.

    Examples
    --------
    >>> import crisptree, numpy as np, tempfile, pathlib
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["low", "low", "high", "high"])
    >>> model = crisptree.CrispTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(pathlib.Path(folder) / "x.crisp")
    ...     crisptree.load(pathlib.Path(folder) / "x.crisp").predict(X).tolist()
    ['low', 'low', 'high', 'high']
    """
    from crisptree.estimators.classifier import CrispTreeClassifier
    from crisptree.export.model_file import ModelFileError, read, tree_from_arrays

    file = read(path, SECTIONS)
    header = file.sections["estimator"]
    if header.get("class") != CrispTreeClassifier.__name__:
        raise ModelFileError(f"{path} holds a {header.get('class')!r}, which this version of crisptree does not know.")
    known = CrispTreeClassifier().get_params(deep=False)
    parameters: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in header["parameters"].items()
        if name in known
    }
    model = CrispTreeClassifier(**parameters)
    model.tree_ = tree_from_arrays(file.arrays, "tree")
    model.greedy_tree_ = tree_from_arrays(file.arrays, "greedy")
    model.classes_ = np.array(header["classes"]["values"], dtype=header["classes"]["dtype"])
    model.n_features_in_ = model.tree_.n_features
    if header["feature_names"] is not None:
        model.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    model.history_ = []
    return model


def _labels_to_json(classes: Any) -> dict[str, Any]:
    return {"values": classes.tolist(), "dtype": "object" if classes.dtype == object else classes.dtype.str}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | tuple)
