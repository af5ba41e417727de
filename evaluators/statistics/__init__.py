"""Intervals, agreement and paired differences: pure functions, 95 % throughout.

An undefined figure is None, never 0 and never NaN. scipy and numpy are imported
inside the functions, so that a process which computes nothing does not pay for them.
"""

from evaluators.statistics.agreement import (
    PERFECT,
    cohen_kappa,
    cohen_kappa_interval,
    kappa_parts,
    perfect_interval,
    quadratic_kappa_parts,
    spearman_parts,
    table_interval,
)
from evaluators.statistics.alpha import (
    interval_alpha,
    interval_alpha_interval,
    krippendorff_alpha,
    krippendorff_alpha_interval,
)
from evaluators.statistics.correction import CorrectedRate, corrected_rate
from evaluators.statistics.intervals import (
    Interval,
    clustered_rate,
    effective_size,
    percentile,
    resample,
    unseen_share,
    wilson,
)
from evaluators.statistics.paired import (
    detectable_drop,
    drop_p_value,
    holm,
    mcnemar,
    odds_ratio,
    pairs_needed,
    shrink,
    smallest_n,
    tango,
)

__all__ = [
    "PERFECT",
    "CorrectedRate",
    "Interval",
    "clustered_rate",
    "cohen_kappa",
    "cohen_kappa_interval",
    "corrected_rate",
    "detectable_drop",
    "drop_p_value",
    "effective_size",
    "holm",
    "interval_alpha",
    "interval_alpha_interval",
    "kappa_parts",
    "krippendorff_alpha",
    "krippendorff_alpha_interval",
    "mcnemar",
    "odds_ratio",
    "pairs_needed",
    "percentile",
    "perfect_interval",
    "quadratic_kappa_parts",
    "resample",
    "shrink",
    "smallest_n",
    "spearman_parts",
    "table_interval",
    "tango",
    "unseen_share",
    "wilson",
]
