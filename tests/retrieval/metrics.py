"""Measures of rankings, as `fetchwell eval` has them: a rank counts from 1, a grade is 1 unless a question says more."""

import math
import random
from collections import defaultdict

MEASURES = ["hit_1", "hit_10", "mrr_10", "ndcg_10", "recall_50"]
RESAMPLES = 2000


def grades_of(question):
    """Returns the grade of each relevant id."""
    grades = {}
    for entry in question["relevant"]:
        if isinstance(entry, str):
            grades[entry] = 1
        else:
            grades[entry["id"]] = entry.get("grade", 1)
    return grades


def measure(question, ranked):
    """Returns the measures of one ranking."""
    grades = grades_of(question)
    if not grades:
        return {"no_hits": float(not ranked)}
    gains = [grades.get(each, 0) for each in ranked[:50]]
    first = next((rank for rank, gain in enumerate(gains[:10], 1) if gain), None)
    ideal = sorted(grades.values(), reverse=True)[:10]

    def discounted(values):
        return sum((2**gain - 1) / math.log2(rank + 1) for rank, gain in enumerate(values, 1))

    return {
        "hit_1": float(bool(gains[:1] and gains[0])),
        "hit_10": float(first is not None),
        "mrr_10": 1 / first if first else 0.0,
        "ndcg_10": discounted(gains[:10]) / discounted(ideal),
        "recall_50": sum(gain > 0 for gain in gains) / len(grades),
    }


def mean(values):
    """Returns the mean of some numbers."""
    return sum(values) / len(values)


def of_kinds(scores, name):
    """Returns the values of a measure by kind."""
    kinds = defaultdict(list)
    for score in scores:
        if name in score:
            kinds[score["kind"]].append(score[name])
    return kinds


def overall(scores, name):
    """Returns a measure with equal weight of kinds."""
    return mean([mean(values) for values in of_kinds(scores, name).values()])


def interval(kinds, resamples=RESAMPLES):
    """Returns the 95 % bootstrap interval of the mean of kinds. Questions are drawn within their kind."""
    drawn = random.Random(1)
    means = sorted(
        mean([mean(drawn.choices(values, k=len(values))) for values in kinds.values()]) for _ in range(resamples)
    )
    return means[int(resamples * 0.025)], means[int(resamples * 0.975) - 1]


def difference(scores, others, name="ndcg_10"):
    """Returns the difference of two runs over the same questions by kind, for `interval` and `overall`."""
    other = {score["id"]: score for score in others}
    return [
        {"kind": score["kind"], name: score[name] - other[score["id"]][name]} for score in scores if name in score
    ]
