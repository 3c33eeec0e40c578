"""The parameters of the estimators by what they are for; ``conf.py`` shows them so."""

GROUPS: dict[str, tuple[str, ...]] = {
    "What the tree looks like": (
        *("split", "max_depth", "max_leaf_nodes", "min_samples_leaf", "leaf_model", "window", "scales", "stages"),
    ),
    "How strongly it is regularised": (
        *("l1", "l2", "input_noise", "shrinkage", "ccp_alpha", "leaf_prior", "leaf_l2", "penalty_share"),
    ),
    "What a split may combine": ("sign_cst", "max_features_per_split", "interaction_cst", "round_splits"),
    "What the data are": (
        "categorical_features",
        "scale",
        "class_weight",
        "ignore_label",
        "ignore_value",
        "normalise_images",
        "pixels_per_epoch",
    ),
    "Images": ("image_shape", "spatial_penalty", "max_shift"),
    "How it is trained": (
        *(
            "effort",
            "algorithm",
            "optimizer",
            "n_init",
            "grow",
            "epochs",
            "finetune_epochs",
            "min_updates",
            "learning_rate",
            "learning_rate_decay",
        ),
        *("batch_size", "steepness", "steepness_step", "annealing", "finetune_steepness", "mass_threshold"),
        "upper_levels",
    ),
    "Limits of growth": ("min_samples_split", "min_weight_fraction_leaf", "min_impurity_decrease"),
    "What makes a forest": ("n_estimators", "bootstrap", "max_samples", "max_features"),
    "What is selected, and on which rows": (
        *("scoring", "time_budget", "max_candidates"),
        *("validation_fraction", "early_stopping", "n_iter_no_change"),
    ),
    "Running": ("warm_start", "random_state", "n_jobs", "verbose", "training", "device", "callbacks"),
}
"""Parameters in none of them stand last."""

OTHERS = "Others"


def group_of(parameter: str) -> str:
    """What a parameter is for."""
    return next((title for title, names in GROUPS.items() if parameter in names), OTHERS)


def grouped(lines: list[str]) -> list[str]:
    """What numpydoc makes of a section of parameters, with a title above those of each group."""
    start = next((place for place, line in enumerate(lines) if line.strip() == ":Parameters:"), None)
    if start is None:
        return lines
    stop = next(
        (place for place in range(start + 1, len(lines)) if lines[place].strip() and not lines[place].startswith(" ")),
        len(lines),
    )
    entries: list[list[str]] = []
    for line in lines[start + 1 : stop]:
        if line.startswith("    **"):
            entries.append([line])
        elif entries:
            entries[-1].append(line)
    by_title: dict[str, list[str]] = {title: [] for title in (*GROUPS, OTHERS)}
    for entry in entries:
        first = entry[0].split("**")[1].split(",")[0].strip()
        by_title[group_of(first)] += [*entry, ""]
    body = []
    for title, own in by_title.items():
        if own:
            body += [f"    .. rubric:: {title}", "", *own]
    return [*lines[: start + 1], "", *body, *lines[stop:]]
