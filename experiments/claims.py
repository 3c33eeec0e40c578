"""The paper's claims, tested on the finished cells against our re-implementations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments.comparing import HIGHER, LOWER, MARGIN, TIED, Comparison, Tally
from experiments.methods import ALGORITHMS, METHODS, STAGES
from experiments.table import Results, Summary

CONFIRMED, NOT_REFUTED, REFUTED, OPEN = "confirmed", "not refuted: higher or tied", "refuted", "open"
VERDICTS = (CONFIRMED, NOT_REFUTED, REFUTED)
SHARE = 0.75
"""“Generally” and “equally” mean: in so many of the comparisons."""

TITLES = {"mnist": "MNIST", "connect4": "Connect-4", "sensit": "SensIT", "protein": "Protein"}
OURS = "finetuned_em"
SHOWN = 4
"""So many of the comparisons that stand against a claim are written out."""


STEEP = (2, 6)
"""The depths between which learning curves rise; most are flat beyond."""

SHALLOW = (2, 4)
"""The depths of “extremely shallow” trees."""


@dataclass(frozen=True)
class Verdict:
    """A claim, its verdicts by the spread and by the margin, and the numbers behind them."""

    data: str
    claim: str
    verdict: str
    by_margin: str = ""
    tally: Tally | None = None
    margin_tally: Tally | None = None
    words: str = ""
    hardest: Comparison | None = None
    """The comparison that speaks most against the claim."""

    @property
    def counts(self) -> tuple[str, str]:
        """Higher, tied and lower by the spread and by the margin."""
        one, other = ("" if tally is None else str(tally) for tally in (self.tally, self.margin_tally))
        return one, other


def evaluate_claims(results: Mapping[str, Results]) -> list[Verdict]:
    """Test all claims of section 4.1 and the supplement on the available data sets."""
    verdicts = [
        at_all_depths(results, "mnist"),
        already_above(results, "mnist", 4),
        at_all_depths(results, "connect4"),
        already_above(results, "connect4", 2),
        on_par(results, "sensit"),
        on_par(results, "protein"),
    ]
    real = [name for name, found in results.items() if not found.config.made]
    for claim in (steeper, especially_shallow, generally, equally_good):
        verdicts += [claim(results, name) for name in real]
    return [*verdicts, largest_gain(results)]


def at_all_depths(results: Mapping[str, Results], name: str) -> Verdict:
    """Finetuned trees are more accurate than every baseline at every depth."""
    return _verdict(results, name, "more accurate on test rows at all depths", every_baseline("test_hard"), ALL_HIGHER)


def on_par(results: Mapping[str, Results], name: str) -> Verdict:
    """Finetuned trees are better than or on par with the non-greedy tree at every depth."""
    claim = "better than or on par with Non-greedy on test rows at all depths"
    return _verdict(results, name, claim, every_baseline("test_hard", ("non_greedy",)), NONE_LOWER)


def generally(results: Mapping[str, Results], name: str) -> Verdict:
    """Finetuned trees are in general more accurate than baselines on the rows that they were trained on."""
    claim = "generally more accurate on the rows trained on"
    return _verdict(results, name, claim, every_baseline("train_hard"), mostly(HIGHER))


def already_above(results: Mapping[str, Results], name: str, depth: int) -> Verdict:
    """Test whether a finetuned tree of one depth is more accurate than every baseline at its best depth."""

    def pairs(found: Results) -> tuple[list[Comparison], int]:
        ours = found.get(OURS, depth, "test_hard")
        baselines = baselines_of(found)
        if ours is None:
            return [], len(baselines)
        made = []
        for baseline in baselines:
            scores = [(found.get(baseline, at, "test_hard"), at) for at in found.config.depths]
            there = [(score.mean, -at, score) for score, at in scores if score is not None]
            if there:
                _, at, best = max(there)
                made.append(Comparison(ours, best, f"depth {depth}", f"{label(baseline)} at depth {-at}"))
        return made, len(baselines)

    return _verdict(
        results, name, f"depth {depth} is above every baseline's best depth on test rows", pairs, ALL_HIGHER
    )


def equally_good(results: Mapping[str, Results], name: str) -> Verdict:
    """EM and the alternating scheme are equally accurate on test rows."""

    def pairs(found: Results) -> tuple[list[Comparison], int]:
        made, asked = [], 0
        for stage in ("greedy", "finetuned"):
            for depth in found.config.depths:
                asked += 1
                one, other = (
                    found.get(f"{stage}_{algorithm}", depth, "test_hard") for algorithm in ("em", "alternating")
                )
                if one and other:
                    made.append(Comparison(one, other, f"{stage}, depth {depth}", "the alternating scheme"))
        return made, asked

    return _verdict(
        results, name, "EM and the alternating scheme perform equally well on test rows", pairs, mostly(TIED)
    )


def steeper(results: Mapping[str, Results], name: str) -> Verdict:
    """Finetuned trees gain more test accuracy with depth than every baseline."""
    first, last = STEEP

    def gain(found: Results, method: str) -> Summary | None:
        low, high = (found.get(method, depth, "test_hard") for depth in STEEP)
        return None if low is None or high is None else high - low

    def pairs(found: Results) -> tuple[list[Comparison], int]:
        ours, baselines = gain(found, OURS), baselines_of(found)
        where = f"depth {last} less depth {first}"
        theirs = [(gain(found, baseline), label(baseline)) for baseline in baselines]
        return [Comparison(ours, other, where, whose) for other, whose in theirs if ours and other], len(baselines)

    claim = f"steeper learning curves: more gained from depth {first} to {last}"
    return _verdict(results, name, claim, pairs, ALL_HIGHER)


def especially_shallow(results: Mapping[str, Results], name: str) -> Verdict:
    """The lead over the best baseline is larger in shallow trees than in deep ones."""

    def pairs(found: Results) -> tuple[list[Comparison], int]:
        deep = [depth for depth in found.config.depths if depth not in SHALLOW]
        one, other = mean_lead(found, SHALLOW), mean_lead(found, deep)
        if one is None or other is None:
            return [], 1
        return [Comparison(one, other, "mean lead at depths 2 and 4", "the deeper trees")], 1

    return _verdict(results, name, "higher test accuracy, especially in extremely shallow trees", pairs, ALL_HIGHER)


def largest_gain(results: Mapping[str, Results]) -> Verdict:
    """The lead over the best baseline is larger on MNIST than on every other data set of the paper."""
    others = [name for name in TITLES if name != "mnist"]

    def pairs(found: Results) -> tuple[list[Comparison], int]:
        ours = mean_lead(found, found.config.depths)
        made = []
        for name in others:
            other = results.get(name)
            theirs = mean_lead(other, other.config.depths) if other else None
            if ours and theirs:
                made.append(Comparison(ours, theirs, "mean lead over all depths", TITLES[name]))
        return made, len(others)

    return _verdict(results, "mnist", "the highest increase in test accuracy of all data sets", pairs, ALL_HIGHER)


def mean_lead(found: Results, depths: Sequence[int]) -> Summary | None:
    """Compute our lead on test rows over the best baseline at each depth, averaged over depths, for every seed."""
    leads = []
    for depth in depths:
        ours = found.get(OURS, depth, "test_hard")
        theirs = [score.mean for name in baselines_of(found) if (score := found.get(name, depth, "test_hard"))]
        if ours is None or not theirs:
            return None
        leads.append([value - max(theirs) for value in ours.values])
    return Summary(tuple(sum(seed) / len(seed) for seed in zip(*leads, strict=False)))


def gamma_pairs(found: Results, algorithm: str = ALGORITHMS[0]) -> list[Comparison]:
    """Compare finetuning whose γ starts again with that whose γ continues, at every depth."""
    names = [f"{stage}_{algorithm}" for stage in STAGES[1:]]
    scores = [[found.get(name, at, "test_hard") for name in names] for at in found.config.depths]
    return [
        Comparison(one, other, f"depth {at}", label(names[1]))
        for (one, other), at in zip(scores, found.config.depths, strict=True)
        if one and other
    ]


def first_depth_ahead(found: Results) -> int | None:
    """Find the depth from which our mean is higher in every finished comparison; None without one."""
    pairs, _ = every_baseline("test_hard")(found)
    behind = [_depth(pair) for pair in pairs if pair.lead <= 0]
    return min((_depth(pair) for pair in pairs if _depth(pair) > max(behind, default=0)), default=None)


def higher_from(found: Results) -> str | None:
    """Say from which depth on our mean is higher in every finished comparison, and by how much."""
    pairs, _ = every_baseline("test_hard")(found)
    if not pairs:
        return None
    first = first_depth_ahead(found)
    if first is None:
        return f"**{found.config.title}**: at the largest depth a baseline has the higher mean."
    rest = [pair for pair in pairs if _depth(pair) >= first]
    narrowest = min(rest, key=lambda pair: pair.lead)
    return (
        f"**{found.config.title}**: from depth {first} on {label(OURS)} has the higher mean in all {len(rest)} "
        f"finished comparisons, in {Tally.of(rest)[HIGHER]} of them beyond a tie. Narrowest lead: {narrowest}."
    )


@dataclass(frozen=True)
class Rule:
    """How comparisons become a verdict, and which outcomes stand against the claim."""

    verdict: Callable[[Tally], str]
    against: tuple[str, ...]

    def against_of(self, tally: Tally) -> list[Comparison]:
        """List the comparisons against the claim, the largest differences first."""
        return [comparison for outcome in self.against for comparison in tally.which(outcome)]

    def hardest(self, tally: Tally) -> Comparison:
        """Return the comparison that speaks most against the claim; the narrowest lead where none does."""
        return next(iter(self.against_of(tally)), min(tally.comparisons, key=lambda pair: pair.lead))


def _all_higher(tally: Tally) -> str:
    if tally[LOWER]:
        return REFUTED
    return NOT_REFUTED if tally[TIED] else CONFIRMED


def mostly(outcome: str) -> Rule:
    """Confirmed where enough of the comparisons have an outcome."""
    others = tuple(other for other in (LOWER, TIED, HIGHER) if other != outcome)
    return Rule(lambda tally: CONFIRMED if tally.share(outcome) >= SHARE else REFUTED, others)


ALL_HIGHER = Rule(_all_higher, (LOWER, TIED))
"""Confirmed by nothing but wins, refuted by one loss."""

NONE_LOWER = Rule(lambda tally: REFUTED if tally[LOWER] else CONFIRMED, (LOWER,))
"""Confirmed where nothing is lost."""


Pairs = Callable[[Results], tuple[list[Comparison], int]]


def _verdict(results: Mapping[str, Results], name: str, claim: str, pairs: Pairs, rule: Rule) -> Verdict:
    found = results.get(name)
    title = found.config.title if found else TITLES[name]
    made, asked = pairs(found) if found else ([], 0)
    if not made:
        return Verdict(title, claim, OPEN, words="no cell that it needs has run")
    tallies = Tally.of(made), Tally.of(made, MARGIN)
    more = "" if len(made) == asked else f", where tested ({len(made)} of {asked})"
    more += ", on part of the seeds" if tallies[0].is_partial else ""
    more += "" if found is None or found.is_verified else ", on data that could not be verified"
    by_spread, by_margin = (rule.verdict(tally) + more for tally in tallies)
    against = rule.against_of(tallies[0])
    words = "; ".join(map(str, against[:SHOWN])) + (f"; and {len(against) - SHOWN} more" if against[SHOWN:] else "")
    return Verdict(title, claim, by_spread, by_margin, *tallies, words, rule.hardest(tallies[0]))


def every_baseline(metric: str, names: tuple[str, ...] | None = None) -> Pairs:
    """Compare ours with every baseline at every depth."""

    def pairs(found: Results) -> tuple[list[Comparison], int]:
        made, asked = [], 0
        for baseline in names or baselines_of(found):
            for depth in found.config.depths:
                asked += 1
                ours, theirs = (found.get(method, depth, metric) for method in (OURS, baseline))
                if ours and theirs:
                    made.append(Comparison(ours, theirs, f"depth {depth}", label(baseline)))
        return made, asked

    return pairs


def baselines_of(found: Results) -> list[str]:
    """List the baselines of the configuration."""
    return [name for name in found.methods if METHODS[name].family == "baselines"]


def label(name: str) -> str:
    """Return the short name of a method, for running text."""
    return METHODS[name].short


def _depth(pair: Comparison) -> int:
    return int(pair.where.split()[-1])
