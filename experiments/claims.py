"""The paper's claims, judged on the finished cells: every word follows from a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from experiments.methods import METHODS
from experiments.table import Results, Summary

CONFIRMED, REFUTED, OPEN = "confirmed", "refuted", "cannot be judged"
ALIKE = 0.5
"""Points of accuracy that two algorithms may differ by and still count as equally good."""

TARGETS = {"mnist": 94.3, "connect4": 78.7}
TITLES = {"mnist": "MNIST", "connect4": "Connect-4"}
OURS, GREEDY, OTHER = "finetuned_em", "greedy_em", "finetuned_alternating"


@dataclass(frozen=True)
class Judgement:
    """A claim, its verdict and the numbers behind it."""

    claim: str
    verdict: str
    words: str


@dataclass(frozen=True)
class Comparison:
    """Ours against a rival: depth for depth, or one depth of ours against the rival's best."""

    depth: int
    rival: str
    rival_depth: int
    ours: Summary
    theirs: Summary

    @property
    def lead(self) -> float:
        """Points by which ours is better."""
        return self.ours.mean - self.theirs.mean

    def __str__(self) -> str:
        where = f"depth {self.depth}"
        place = f"{label(self.rival)}" + (f" at depth {self.rival_depth}" if self.rival_depth != self.depth else "")
        return f"{where}: {self.ours.with_seeds} against {self.theirs.with_seeds} of {place} ({self.lead:+.2f})"


def judge(results: Mapping[str, Results]) -> list[Judgement]:
    """All claims, on the data sets that there are."""
    judgements = [
        at_all_depths(results, "mnist", "test_hard"),
        already_above(results, "mnist", 4),
        at_all_depths(results, "connect4", "test_hard"),
        already_above(results, "connect4", 2),
    ]
    judgements += [at_all_depths(results, name, "train_hard") for name in results]
    judgements += [equally_good(results, name) for name in results]
    return judgements + [reaches(results, name, 8, target) for name, target in TARGETS.items()]


def at_all_depths(results: Mapping[str, Results], name: str, metric: str) -> Judgement:
    """Finetuned trees are more accurate than every rival at every depth."""
    part = "test rows" if metric == "test_hard" else "rows it was trained on"
    claim = f"{title(results, name)}: higher accuracy on the {part} than all rivals at all depths"
    found = results.get(name)
    if found is None:
        return _nothing(claim)
    asked = [(depth, rival) for depth in found.config.depths for rival in rivals_of(found)]
    pairs = _compared(found, OURS, asked, metric)
    if not pairs:
        return _nothing(claim)
    greedy = _compared(found, GREEDY, asked, metric)
    words = _tally(label(OURS), pairs) + f" {_extremes(pairs)}"
    words += f" {_tally(label(GREEDY), greedy)}" if greedy else ""
    return Judgement(claim, _verdict(pairs, len(asked)), f"{words} {_judged(pairs, asked)}")


def already_above(results: Mapping[str, Results], name: str, depth: int) -> Judgement:
    """A finetuned tree of one depth is more accurate than every rival at its best depth."""
    claim = f"{title(results, name)}: depth {depth} is already above all rivals' best test accuracy at any depth"
    found = results.get(name)
    ours = found.get(OURS, depth, "test_hard") if found else None
    if found is None or ours is None:
        return _nothing(claim)
    asked = [(at, rival) for at in found.config.depths for rival in rivals_of(found)]
    scores = {(at, rival): found.get(rival, at, "test_hard") for at, rival in asked}
    pairs = []
    for rival in rivals_of(found):
        of_rival = [(score.mean, at, score) for (at, who), score in scores.items() if who == rival and score]
        if of_rival:
            _, at, score = max(of_rival, key=lambda entry: (entry[0], -entry[1]))
            pairs.append(Comparison(depth, rival, at, ours, score))
    if not pairs:
        return _nothing(claim)
    finished = [key for key in asked if scores[key]]
    verdict = _verdict(pairs, len(pairs) + (len(asked) - len(finished)))
    words = f"{_tally(label(OURS), pairs)} {'; '.join(map(str, pairs))}."
    return Judgement(claim, verdict, f"{words} {_named(finished, asked)}")


def equally_good(results: Mapping[str, Results], name: str) -> Judgement:
    """EM and the alternating scheme differ by no more than seeds do, or by less than half a point."""
    claim = f"{title(results, name)}: EM and the alternating scheme are equally accurate on the test rows"
    found = results[name]
    differences, scores, asked = [], [], 0
    for stage in ("greedy", "finetuned"):
        for depth in found.config.depths:
            asked += 1
            pair = [found.get(f"{stage}_{algorithm}", depth, "test_hard") for algorithm in ("em", "alternating")]
            if pair[0] and pair[1]:
                differences.append((stage, depth, pair[0].mean - pair[1].mean, combined(pair[0], pair[1])))
                scores += [pair[0], pair[1]]
    if not differences:
        return _nothing(claim)
    apart = [entry for entry in differences if abs(entry[2]) > max(ALIKE, entry[3])]
    verdict = REFUTED if apart else CONFIRMED + ("" if len(differences) == asked else _where(len(differences), asked))
    verdict += _on_some_seeds(scores)
    shown = "; ".join(
        f"{stage}, depth {depth}: {difference:+.2f} (spread {spread:.2f})"
        for stage, depth, difference, spread in differences
    )
    mean = sum(entry[2] for entry in differences) / len(differences)
    words = f"EM minus alternating, in points: {shown}. On average {mean:+.2f}; "
    words += f"{len(apart)} of {len(differences)} differ by more than {ALIKE} points and more than the spread of a "
    return Judgement(claim, verdict, words + "difference between single seeds.")


def reaches(results: Mapping[str, Results], name: str, depth: int, target: float) -> Judgement:
    """Finetuned trees of a depth reach a test accuracy."""
    claim = f"{title(results, name)}: finetuned trees of depth {depth} reach {target} % on the test rows"
    found = results.get(name)
    score = found.get(OURS, depth, "test_hard") if found else None
    if score is None:
        return _nothing(claim)
    verdict = (CONFIRMED if score.mean >= target else REFUTED) + _on_some_seeds([score])
    words = f"{label(OURS)}: {score} over {len(score.values)} seeds, {score.mean - target:+.2f} from the target."
    other = found.get(OTHER, depth, "test_hard") if found else None
    if other is not None:
        words += f" {label(OTHER)}: {other} over {len(other.values)} seeds, {other.mean - target:+.2f} from it."
    return Judgement(claim, verdict, words)


def combined(one: Summary, other: Summary) -> float:
    """Spread of the difference between single seeds of two methods: √(s² + s'²)."""
    return ((one.spread or 0.0) ** 2 + (other.spread or 0.0) ** 2) ** 0.5


def rivals_of(found: Results) -> list[str]:
    """The rivals that the configuration asks for."""
    return [name for name in found.methods if METHODS[name].family == "rivals"]


def label(name: str) -> str:
    """A method as the figure calls it."""
    return METHODS[name].label


def title(results: Mapping[str, Results], name: str) -> str:
    """A data set as the figure calls it."""
    return results[name].config.title if name in results else TITLES[name]


def _compared(found: Results, mine: str, asked: list[tuple[int, str]], metric: str) -> list[Comparison]:
    pairs = []
    for depth, rival in asked:
        ours, theirs = found.get(mine, depth, metric), found.get(rival, depth, metric)
        if ours and theirs:
            pairs.append(Comparison(depth, rival, depth, ours, theirs))
    return pairs


def _verdict(pairs: list[Comparison], asked: int) -> str:
    some = _on_some_seeds(score for pair in pairs for score in (pair.ours, pair.theirs))
    if any(pair.lead <= 0 for pair in pairs):
        return REFUTED + some
    return CONFIRMED + ("" if len(pairs) == asked else _where(len(pairs), asked)) + some


def _on_some_seeds(scores: Iterable[Summary]) -> str:
    """A verdict on fewer seeds than are asked for says so."""
    return ", on part of the seeds" if any(score.is_partial for score in scores) else ""


def _where(judged: int, asked: int) -> str:
    return f" where judged ({judged} of {asked} comparisons)"


def _tally(name: str, pairs: list[Comparison]) -> str:
    higher = sum(pair.lead > 0 for pair in pairs)
    return f"{name} is higher in {higher} of {len(pairs)} comparisons."


def _extremes(pairs: list[Comparison]) -> str:
    """What stands against the claim, else the narrowest lead; and the widest."""
    against = sorted((pair for pair in pairs if pair.lead <= 0), key=lambda pair: pair.lead)
    widest = f"Widest lead: {max(pairs, key=lambda pair: pair.lead)}."
    if against:
        return f"Not higher at {'; '.join(map(str, against))}. {widest}"
    return f"Narrowest lead: {min(pairs, key=lambda pair: pair.lead)}. {widest}"


def _judged(pairs: list[Comparison], asked: list[tuple[int, str]]) -> str:
    return _named([(pair.depth, pair.rival) for pair in pairs], asked)


def _named(finished: list[tuple[int, str]], asked: list[tuple[int, str]]) -> str:
    """Which cells were judged, by rival."""
    parts = []
    for rival in dict.fromkeys(name for _, name in asked):
        depths = [str(depth) for depth, name in finished if name == rival]
        parts.append(f"{label(rival)} at {', '.join(depths)}" if depths else f"{label(rival)} nowhere")
    return f"Judged: {'; '.join(parts)}."


def _nothing(claim: str) -> Judgement:
    return Judgement(claim, OPEN, "The cells that it needs are not there.")
