"""Intervals, agreement and paired differences: pure functions, 95 % throughout.

An undefined figure is None, never 0 and never NaN. scipy, statsmodels and numpy are imported
inside the functions, so that a process which computes nothing does not pay for them.
"""

from evaluators.statistics.agreement import (
    cohen_kappa,
    cohen_kappa_interval,
    kappa_parts,
    krippendorff_alpha,
    quadratic_kappa_parts,
    spearman_parts,
)
from evaluators.statistics.intervals import (
    Interval,
    clustered_rate,
    effective_size,
    percentile,
    resample,
    wilson,
)
from evaluators.statistics.paired import (
    detectable_drop,
    drop_p_value,
    holm,
    mcnemar,
    pairs_needed,
    shrink,
    smallest_n,
    tango,
)

__all__ = [
    "Interval",
    "clustered_rate",
    "cohen_kappa",
    "cohen_kappa_interval",
    "detectable_drop",
    "drop_p_value",
    "effective_size",
    "holm",
    "kappa_parts",
    "krippendorff_alpha",
    "mcnemar",
    "pairs_needed",
    "percentile",
    "quadratic_kappa_parts",
    "resample",
    "shrink",
    "smallest_n",
    "spearman_parts",
    "tango",
    "wilson",
]
