"""Types that fitted estimators consist of, for loaders that ask which types to trust."""

from __future__ import annotations

TRUSTED_TYPES = (
    "collections.Counter",
    "crisptree.data.raw_rows.Scaling",
    "crisptree.encoding.preprocessing.ColumnOptions",
    "crisptree.encoding.preprocessing.ColumnProfile",
    "crisptree.encoding.preprocessing.DateProfile",
    "crisptree.encoding.preprocessing.TableProfile",
    "crisptree.encoding.containers.Table",
    "crisptree.encoding.containers._empty_column",
    "crisptree.encoding.preprocessing.Column",
    "crisptree.encoding.preprocessing.Preprocessing",
    "crisptree.encoding.table_encoder.TableEncoder",
    "crisptree.encoding.text_formats.NumberFormat",
    "crisptree.estimators.classifier.CrispTreeClassifier",
    "crisptree.estimators.forest.CrispForestClassifier",
    "crisptree.estimators.forest.CrispForestRegressor",
    "crisptree.estimators.pixels.CrispPixelRegressor",
    "crisptree.estimators.pixels.CrispSegmenter",
    "crisptree.estimators.regressor.CrispTreeRegressor",
    "crisptree.inference.finalization.PruningPath",
    "crisptree.inference.flat_tree.CrispForest",
    "crisptree.inference.flat_tree.FlatTree",
    "crisptree.inference.flat_tree.Statistics",
    "crisptree.learning.history.EpochRecord",
    "crisptree.parameters.training.TrainingOptions",
    "crisptree.selection.candidates.Trial",
    "crisptree.structure.TreeStructure",
)


def skops_trusted_types() -> list[str]:
    """Return the types of fitted estimators, for ``skops.io.load(file, trusted=crisptree.skops_trusted_types())``.

    Trees whose splits are modules hold tensors, which skops does not store; ``save`` does.

    Examples
    --------
    >>> from crisptree import skops_trusted_types
    >>> "crisptree.estimators.classifier.CrispTreeClassifier" in skops_trusted_types()
    True
    """
    return list(TRUSTED_TYPES)
