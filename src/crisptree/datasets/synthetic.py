"""A made table of customers as companies have them: ids, dates, categories, holes; some of them leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

PLANS = ("basic", "plus", "premium")
REGIONS = ("north", "south", "east", "west")
DATE_OF_EXPORT = np.datetime64("2024-06-30")


def make_churn(n_rows: int = 2000, random_state: int | None = 0) -> dict[str, npt.NDArray[Any]]:
    """Customers of a made telephone company, and whether each has left.

    Those who call often and are new leave, those with the plan "plus" stay, and who never answered a survey (no
    ``satisfaction``) leaves more often than most: that a value is missing says something. ``region`` says nothing.

    Parameters
    ----------
    n_rows : int, default=2000
        How many customers.
    random_state : int or None, default=0
        Makes the table repeatable.

    Returns
    -------
    dict of ndarray
        Columns by name, for ``pandas.DataFrame(make_churn())``; the last one, ``churned``, is "yes" or "no".

    Examples
    --------
    >>> table = make_churn(3)
    >>> list(table)
    ['customer_id', 'joined', 'plan', 'region', 'months', 'fee', 'calls', 'satisfaction', 'paperless', 'churned']
    >>> table["customer_id"].tolist()
    ['C-00000', 'C-00001', 'C-00002']
    """
    rng = np.random.default_rng(random_state)
    months = rng.integers(1, 72, n_rows)
    plan = rng.choice(np.array(PLANS, dtype=object), n_rows, p=(0.5, 0.3, 0.2))
    region = rng.choice(np.array(REGIONS, dtype=object), n_rows)
    fee = np.round(15 + 12 * (plan == "plus") + 30 * (plan == "premium") + rng.normal(0, 3, n_rows), 2)
    calls = rng.poisson(1.5, n_rows)
    satisfaction = rng.integers(1, 11, n_rows).astype(np.float64)
    silent = rng.random(n_rows) < 0.25
    tendency = 1.1 * calls - 0.07 * months - 1.8 * (plan == "plus") - 0.35 * (satisfaction - 5.5) * ~silent
    tendency += 1.2 * silent + rng.logistic(0, 0.7, n_rows)
    satisfaction[silent], region[rng.random(n_rows) < 0.05] = np.nan, None
    return {
        "customer_id": np.array([f"C-{number:05}" for number in range(n_rows)], dtype=object),
        "joined": DATE_OF_EXPORT - (30 * months).astype("timedelta64[D]"),
        "plan": plan,
        "region": region,
        "months": months,
        "fee": fee,
        "calls": calls,
        "satisfaction": satisfaction,
        "paperless": rng.random(n_rows) < 0.6,
        "churned": np.where(tendency > 0.2, "yes", "no").astype(object),
    }
