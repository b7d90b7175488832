"""What the benchmark of the mechanisms prints."""

import math

from rich.table import Table

from benchmarks.attention_cases import MECHANISMS, TARGETS
from benchmarks.attention_results import WITHIN, Results
from benchmarks.attention_timing import BOTH, DIRECTIONS, FORWARD


def targets(results: Results) -> Table:
    """Every line of the table of targets, with what was measured."""
    shown = _table(
        "Targets of speed: how many times faster ours is, median (quartiles)",
        ("ours (B, T, N, H)", "against", "direction"),
        ("target", "measured", ""),
    )
    for target in TARGETS:
        for direction in DIRECTIONS:
            verdict = results.verdict(target, direction)
            first = direction == FORWARD
            ours = f"{target.ours} {verdict.shape}" if verdict else target.ours
            peer = target.peer + "'s rate" * bool(target.work)
            found = (verdict.value.text(".3g"), _met(verdict.met)) if verdict else ("not installed", "")
            least = f"≥ {target.least[direction]:g}"
            shown.add_row(ours if first else "", peer if first else "", direction, least, *found)
    return shown


def choices(results: Results) -> Table:
    """What "auto" chose at every shape, and whether anything else would have been quicker."""
    shown = _table(
        f"Target of `auto`: at most {WITHIN:g} of the best side's time",
        ("(B, T, N, H)", "direction", "auto is", "the best other is"),
        ("auto / best", ""),
    )
    for forward, both in zip(*(results.choices(direction) for direction in DIRECTIONS), strict=True):
        for direction, choice in ((FORWARD, forward), (BOTH, both)):
            program = "its own" if choice.program == "auto" else choice.program
            shown.add_row(
                str(choice.shape) if direction == FORWARD else "",
                direction,
                program,
                choice.best,
                choice.ratio.text(".3g"),
                _met(choice.ratio.median <= WITHIN),
            )
    for direction in DIRECTIONS:
        worst, reached = results.worst_choice(direction)
        shape = str(worst.shape)
        shown.add_row("worst: " + shape, direction, "", worst.best, worst.ratio.text(".3g"), _met(reached))
    return shown


def memory(results: Results) -> Table:
    """The exponent of every mechanism's memory."""
    lengths = sorted({record.T for record in results.select(part="lengths")})
    shown = _table(
        f"Targets of memory: exponent of T in the temporaries, T = {', '.join(map(str, lengths))}",
        ("mechanism",),
        (*DIRECTIONS, "target", ""),
    )
    for mechanism in MECHANISMS:
        slope = results.slope(mechanism)
        exponents = [f"{slope.exponents[d]:.2f}" if d in slope.exponents else "" for d in DIRECTIONS]
        if slope.allowed is None:
            shown.add_row(mechanism.name, *exponents, "", "")
        else:
            low, high = slope.allowed
            target = f"≤ {high:g}" if math.isinf(low) else f"{low:g} to {high:g}"
            shown.add_row(mechanism.name, *exponents, target, _met(slope.met))
    return shown


def errors(results: Results) -> Table:
    """How far every approximation is from dense, and what it costs."""
    shown = _table(
        "Error on random inputs, root mean square, relative to dense",
        ("mechanism", "cost parameter"),
        ("value", "error", "time / dense"),
    )
    before = ""
    for found in results.approximations():
        parameter = next(mechanism.cost for mechanism in MECHANISMS if mechanism.name == found.side)
        names = (found.side, parameter) if found.side != before else ("", "")
        shown.add_row(*names, str(found.cost or ""), f"{found.error:.3f}", f"{found.time:.2f}")
        before = found.side
    return shown


def libraries(results: Results) -> Table:
    """Ours against the same in libraries."""
    shown = _table(
        "Against libraries: how many times faster ours is, median (quartiles)",
        ("ours (B, T, N, H)", "against", "direction"),
        ("measured",),
    )
    for comparison in results.comparisons():
        shown.add_row(
            f"{comparison.ours} {comparison.shape}",
            comparison.peer,
            comparison.direction,
            comparison.faster.text(".3g"),
        )
    return shown


def _table(title: str, words: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    shown = Table(title=title, title_justify="left", box=None)
    for heading in words:
        shown.add_column(heading)
    for heading in numbers:
        shown.add_column(heading, justify="right")
    return shown


def _met(reached: bool) -> str:
    return "[green]met[/]" if reached else "[red]not met[/]"


def all_of(results: Results) -> list[Table]:
    """Everything, the targets first."""
    return [part(results) for part in (targets, choices, memory, errors, libraries)]


def summary(results: Results) -> str:
    """How many of all targets are met."""
    verdicts = [results.verdict(target, direction) for target in TARGETS for direction in DIRECTIONS]
    speed = [verdict.met for verdict in verdicts if verdict is not None]
    speed += [results.worst_choice(direction)[1] for direction in DIRECTIONS]
    slopes = [results.slope(mechanism) for mechanism in MECHANISMS]
    memory = [slope.met for slope in slopes if slope.allowed is not None]
    return f"Targets met: {sum(speed)} of {len(speed)} of speed, {sum(memory)} of {len(memory)} of memory."
