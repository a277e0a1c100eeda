"""Which seed finds which mutant, and which bugs of the list cannot be had here.

`python -m tests.fuzz.hunt` looks for the seeds anew, and `--median` counts them; they change when what is drawn does.
"""

FOUND: dict[str, int] = {
    "BM-01": 1, "BM-02": 1, "BM-03": 11, "BM-04": 105, "BM-05": 5, "BM-06": 1, "BM-07": 1,
    "BM-08": 3, "BM-09": 11, "BM-10": 266, "BM-11": 5, "BM-12": 3, "BM-13": 15, "BM-14": 68,
    "BM-15": 1, "BM-16": 689, "BM-17": 96, "BM-18": 93, "BM-19": 3, "BM-20": 11, "BM-21": 15,
    "BM-22": 1, "BM-23": 35, "BM-24": 18, "BM-25": 93, "BM-26": 20, "BM-27": 3, "BM-28": 11,
    "BM-29": 3, "BM-30": 1, "BM-31": 1, "BM-32": 1, "BM-33": 424, "BM-34": 3, "BM-40": 10,
    "BM-41": 928, "BM-42": 4, "BM-43": 110, "BM-44": 1, "BM-45": 33, "BM-47": 2, "BM-48": 2,
    "BM-53": 1,
}
"""Mutant → the first seed, from 1 on, that finds it."""

MEDIAN: dict[str, int] = {
    "BM-01": 2, "BM-02": 6, "BM-03": 66, "BM-04": 343, "BM-05": 5, "BM-06": 1, "BM-07": 1,
    "BM-08": 5, "BM-09": 8, "BM-10": 467, "BM-11": 4, "BM-12": 10, "BM-13": 10, "BM-14": 94,
    "BM-15": 3, "BM-16": 490, "BM-17": 54, "BM-18": 59, "BM-19": 5, "BM-20": 36, "BM-21": 15,
    "BM-22": 2, "BM-23": 35, "BM-24": 197, "BM-25": 83, "BM-26": 166, "BM-27": 7, "BM-28": 8,
    "BM-29": 5, "BM-30": 1, "BM-31": 2, "BM-32": 2, "BM-33": 424, "BM-34": 5, "BM-40": 10,
    "BM-41": 928, "BM-42": 103, "BM-43": 764, "BM-44": 7, "BM-45": 21, "BM-47": 2, "BM-48": 2, "BM-53": 4,
}
"""Mutant → how many seeds it takes on the median, from five places a million seeds apart."""

LAW_FOUND: dict[str, int] = {
    **dict.fromkeys(("S2", "S3", "S4", "S5", "S11", "S15", "S16", "S18", "Q6", "L2"), 1),
    "S17": 2, "S9": 2, "S7": 3, "S8": 3, "L1": 3, "L1'": 3, "L3": 11, "L6": 6, "L7": 6, "S1b": 11, "Q": 15,
}
"""Law → a seed at which its breaker is noticed."""

NOT_APPLYING: dict[str, str] = {
    "BM-35": (
        "two schedulers that preempt for ever (#130429): each of them is right by what it knows, so no line could be "
        "wrong; how often one pod may choose victims is bounded by the judge (S8) and by its backoff"
    ),
    "BM-36": (
        "groups that hold each other's room at permit (scheduler-plugins#117): no plugin here schedules groups; "
        "whoever is held at permit is let go after fifteen minutes at the latest"
    ),
    "BM-46": (
        "a deadlock with a Lease that is still renewed (rackerlabs/spot#384): the thread that decides is the thread "
        "that renews, so whoever hangs loses the Lease"
    ),
}
"""Bugs of the list that have no mutant, and why."""

LISTED = [f"BM-{number:02}" for number in (*range(1, 37), *range(40, 48))]
"""The bugs that must be found or named."""
