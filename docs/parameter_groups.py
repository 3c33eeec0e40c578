"""Groups of the estimators' parameters, which ``conf.py`` uses for their documentation."""

GROUPS: dict[str, tuple[str, ...]] = {
    "Tree structure": (
        *("split", "max_depth", "max_leaf_nodes", "min_samples_leaf", "leaf_model", "window", "scales", "stages"),
    ),
    "Regularisation": (
        *("l1", "l2", "input_noise", "shrinkage", "ccp_alpha", "leaf_prior", "leaf_l2", "penalty_share"),
    ),
    "Constraints on splits": ("monotonic_cst", "max_features_per_split", "interaction_cst", "round_splits"),
    "Data": (
        "categorical_features",
        "scale",
        "class_weight",
        "ignore_label",
        "ignore_value",
        "normalise_images",
        "pixels_per_epoch",
    ),
    "Images": ("image_shape", "spatial_penalty", "max_shift"),
    "Optimisation": (
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
    "Forest": ("n_estimators", "bootstrap", "max_samples", "max_features"),
    "Model selection": (
        *("scoring", "time_budget", "max_candidates"),
        *("validation_fraction", "early_stopping", "n_iter_no_change"),
    ),
    "Running": ("warm_start", "random_state", "n_jobs", "verbose", "training", "device", "callbacks"),
}
"""Other parameters come last."""

OTHERS = "Others"


def group_of(parameter: str) -> str:
    """Return the group of a parameter."""
    return next((title for title, names in GROUPS.items() if parameter in names), OTHERS)


def grouped(lines: list[str]) -> list[str]:
    """Insert group titles into a section of parameters as numpydoc renders it."""
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
