"""Names that parameters have elsewhere: in earlier versions, in scikit-learn, LightGBM, XGBoost and CatBoost."""

from __future__ import annotations

RENAMED = {
    "apart": "interaction_cst",
    "categorical": "categorical_features",
    "leaf_penalty": "leaf_l2",
    "leaves": "leaf_model",
    "prune": "ccp_alpha",
    "roughness": "spatial_penalty",
    "shifts": "max_shift",
    "sign_cst": "monotonic_cst",
    "signs": "monotonic_cst",
}
"""Names in model files of earlier versions, and what the parameters are called now."""

RENAMED_VALUES = {
    ("algorithm", "non_greedy"): "likelihood",
    ("grow", "axis_aligned"): "cart",
    ("n_estimators", "auto"): 25,
    ("split", "mixed"): "oblique",
    **{("grow", name): "greedy" for name in ("random", "oc1", "co2")},
}
"""Values in model files of earlier versions that have another name now, or are no longer part of the package."""

ELSEWHERE = {
    "bagging_fraction": "max_samples",
    "boosting_type": "boosting has no counterpart: CrispForestClassifier and CrispForestRegressor average trees",
    "cat_features": "categorical_features",
    "categorical_feature": "categorical_features",
    "class_weights": "class_weight",
    "colsample_bylevel": "max_features",
    "colsample_bynode": "max_features",
    "colsample_bytree": "max_features",
    "criterion": "the loss is the log loss for classification and the squared error for regression; `scoring` selects",
    "depth": "max_depth",
    "device_type": "device",
    "early_stopping_round": "n_iter_no_change",
    "early_stopping_rounds": "n_iter_no_change",
    "enable_categorical": "categorical_features",
    "eval_metric": "scoring",
    "extra_trees": 'use split="oblique": its trees start at random',
    "feature_fraction": "max_features",
    "gamma": "min_impurity_decrease",
    "grow_policy": "max_leaf_nodes",
    "interaction_constraints": "interaction_cst",
    "iterations": "n_estimators",
    "l2_leaf_reg": "leaf_l2",
    "l2_regularization": "l2",
    "lambda_l1": "l1",
    "lambda_l2": "l2",
    "linear_tree": 'use leaf_model="linear"',
    "loss": "the loss is the log loss for classification and the squared error for regression; `scoring` selects",
    "max_bin": "thresholds are exact, there are no bins",
    "max_bins": "thresholds are exact, there are no bins",
    "max_iter": "epochs",
    "max_leaves": "max_leaf_nodes",
    "metric": "scoring",
    "min_child_samples": "min_samples_leaf",
    "min_child_weight": "min_weight_fraction_leaf",
    "min_data_in_leaf": "min_samples_leaf",
    "min_gain_to_split": "min_impurity_decrease",
    "min_impurity_split": "min_impurity_decrease",
    "min_split_gain": "min_impurity_decrease",
    "monotone_constraints": "monotonic_cst",
    "monotonic_constraints": "monotonic_cst",
    "n_iter": "epochs",
    "nthread": "n_jobs",
    "num_boost_round": "n_estimators",
    "num_iterations": "n_estimators",
    "num_leaves": "max_leaf_nodes",
    "num_threads": "n_jobs",
    "objective": "the class says it: CrispTreeClassifier or CrispTreeRegressor",
    "oob_score": "it is computed always, see the attribute `oob_score_`",
    "path_smooth": "shrinkage",
    "reg_alpha": "l1",
    "reg_lambda": "l2",
    "scale_pos_weight": "class_weight",
    "is_unbalance": 'use class_weight="balanced"',
    "seed": "random_state",
    "splitter": 'use split="axis" for thresholds on one feature, split="oblique" for hyperplanes',
    "subsample": "max_samples",
    "thread_count": "n_jobs",
    "tree_method": "thresholds are exact, there are no bins",
    "verbosity": "verbose",
}
"""Parameters of other libraries: what they are called here, or a remark where there is no such parameter."""

ONLY_FORESTS = ("bootstrap", "max_features", "max_samples", "n_estimators")


def describe_unknown(estimator: str, name: str, declared: set[str], options: set[str]) -> str | None:
    """Say what an unknown parameter is called here, or where it belongs; None for a word of nobody.

    Examples
    --------
    >>> describe_unknown("CrispTreeClassifier", "num_leaves", {"max_leaf_nodes"}, set())
    "CrispTreeClassifier() has no parameter 'num_leaves'; here: `max_leaf_nodes`."
    """
    text = f"{estimator}() has no parameter {name!r}"
    if name in RENAMED:
        new = RENAMED[name]
        place = f"training=TrainingOptions({new}=...)" if new in options else f"{new}=..."
        return f"{text}; it is called {new!r} now: {place}."
    if name in options:
        return f"{text}; it is a training option: training=TrainingOptions({name}=...)."
    remark = ELSEWHERE.get(name, name)
    if remark in declared:
        return f"{text}; here: `{remark}`."
    if remark in options:
        return f"{text}; here: `{remark}` in training=TrainingOptions({remark}=...)."
    if remark in ONLY_FORESTS:
        limit = " A tree limits the features of a split by `max_features_per_split`." if "features" in remark else ""
        return f"{text}; forests have it: CrispForestClassifier or CrispForestRegressor ({remark}=...).{limit}"
    return None if remark == name or " " not in remark else f"{text}; {remark}."
