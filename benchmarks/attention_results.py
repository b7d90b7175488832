"""What the benchmark of the mechanisms found: rows of its CSV, and what they say of every target."""

import csv
import math
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.attention_cases import LIBRARIES, Mechanism, Target
from benchmarks.attention_timing import DIRECTIONS, Shape, slope
from benchmarks.interleaved import Quartiles, ratios
from errors import RunError, UserError

SECONDS, BYTES, ERROR = "seconds", "temporary bytes", "relative error"
WITHIN = 1.1  # what "auto" may take of the best side's time
LINEAR_SLOPE = 1.1
DENSE_SLOPE = (1.9, 2.1)


class Record(NamedTuple):
    """One measurement, a row of the CSV.

    Attributes:
        part: of the benchmark: "targets", "auto", "lengths", "libraries" or "errors".
        side: what was measured.
        program: the side of the same race whose compiled program this is, and whose times these are: the
            side itself, unless another one comes down to the very same program.
        direction: "forward" or "forward + backward".
        B: batch.
        T: length of queries and keys.
        N: heads.
        H: head dim.
        cost: value of the cost parameter, 0 where there is none.
        quantity: "seconds", "temporary bytes" or "relative error".
        round: counted from 0; sides of one race and round are neighbours in time.
        value: in the unit that `quantity` names.
    """

    part: str
    side: str
    program: str
    direction: str
    B: int
    T: int
    N: int
    H: int
    cost: int
    quantity: str
    round: int
    value: float

    @property
    def shape(self) -> Shape:
        """`(B, T, N, H)`."""
        return (self.B, self.T, self.N, self.H)


class Verdict(NamedTuple):
    """What was measured for one target.

    Attributes:
        shape: at which.
        value: how many times faster ours is, or our rate in the peer's.
        met: whether its median reaches the target.
    """

    shape: Shape
    value: Quartiles
    met: bool


class Choice(NamedTuple):
    """What "auto" does at one shape.

    Attributes:
        shape: of query, key and value.
        program: the side whose program it is, or "auto" if it is its own.
        best: the quickest of the others.
        ratio: its time over that of the best.
    """

    shape: Shape
    program: str
    best: str
    ratio: Quartiles


class Comparison(NamedTuple):
    """Ours against the same in a library.

    Attributes:
        ours: name of our side.
        peer: name of the library.
        shape: of both.
        direction: "forward" or "forward + backward".
        faster: how many times faster ours is.
    """

    ours: str
    peer: str
    shape: Shape
    direction: str
    faster: Quartiles


class Slope(NamedTuple):
    """How the temporary memory of a mechanism grows.

    Attributes:
        exponents: of the length, for each direction that was measured.
        allowed: the least and the greatest that meet the target, None where there is none.
    """

    exponents: dict[str, float]
    allowed: tuple[float, float] | None

    @property
    def met(self) -> bool:
        """Whether all exponents reach the target, or there is none."""
        low, high = self.allowed or (-math.inf, math.inf)
        return all(low <= exponent <= high for exponent in self.exponents.values())


class Approximation(NamedTuple):
    """How near a mechanism comes to dense.

    Attributes:
        side: its name.
        cost: value of its cost parameter.
        error: root mean square of the difference, over that of dense.
        time: as a multiple of dense's.
    """

    side: str
    cost: int
    error: float
    time: float


class Results:
    """All measurements of a run.

    Args:
        records: in any order of the parts; within a race, by round.
    """

    def __init__(self, records: Iterable[Record] = ()):
        self.records = list(records)

    def add(self, records: Iterable[Record]) -> None:
        """Add what was measured."""
        self.records.extend(records)

    def select(self, **fields) -> list[Record]:
        """The records whose fields have these values."""
        return [r for r in self.records if all(getattr(r, name) == value for name, value in fields.items())]

    def values(self, **fields) -> list[float]:
        """The values of the records with these fields, by round."""
        return [record.value for record in self.select(**fields)]

    def sides(self, **fields) -> list[str]:
        """The sides of the records with these fields, each once."""
        return list(dict.fromkeys(record.side for record in self.select(**fields)))

    def compare(self, part: str, ours: str, peer: str, direction: str) -> Comparison | None:
        """How many times faster ours is, or None where one of the two was not measured."""
        mine, theirs = (self.select(part=part, side=s, direction=direction) for s in (ours, peer))
        if not mine or not theirs:
            return None
        faster = Quartiles.of(ratios([r.value for r in theirs], [r.value for r in mine]))
        return Comparison(ours, peer, mine[0].shape, direction, faster)

    def verdict(self, target: Target, direction: str) -> Verdict | None:
        """What was measured for a target, or None where one of its sides is not there."""
        found = self.compare("targets", target.ours, target.peer, direction)
        if found is None:
            return None
        value = Quartiles(*(target.work.get(direction, 1.0) * ratio for ratio in found.faster))
        return Verdict(found.shape, value, value.median >= target.least[direction])

    def comparisons(self) -> list[Comparison]:
        """Every library that was measured beside ours."""
        pairs = [("targets", "blockwise", peer) for peer in ("jax.nn", "Flax", "torch")]
        pairs += [("libraries", library.mechanism, library.package) for library in LIBRARIES]
        found = (self.compare(*pair, direction) for pair in pairs for direction in DIRECTIONS)
        return [comparison for comparison in found if comparison is not None]

    def choices(self, direction: str) -> list[Choice]:
        """What "auto" did at every shape of the grid that was measured."""
        records = self.select(part="auto", side="auto", direction=direction)
        return [self._choice(shape, direction) for shape in dict.fromkeys(r.shape for r in records)]

    def _choice(self, shape: Shape, direction: str) -> Choice:
        race = Results(self.select(part="auto", shape=shape, direction=direction))
        times = {side: race.values(side=side) for side in race.sides()}
        auto = times.pop("auto")
        best = min(times, key=lambda side: statistics.median(times[side]))
        if len(auto) == len(times[best]) > 1:
            ratio = Quartiles.of(ratios(auto, times[best]))
        else:  # "auto" was so slow that it was left out of the rounds
            ratio = Quartiles(*[auto[0] / statistics.median(times[best])] * 3)
        return Choice(shape, race.select(side="auto")[0].program, best, ratio)

    def worst_choice(self, direction: str) -> tuple[Choice, bool]:
        """The shape at which "auto" does worst, and whether that is still within the target."""
        worst = max(self.choices(direction), key=lambda choice: choice.ratio.median)
        return worst, worst.ratio.median <= WITHIN

    def slope(self, mechanism: Mechanism) -> Slope:
        """How a mechanism's memory grows with the length."""
        exponents = {}
        for direction in DIRECTIONS:
            found = self.select(part="lengths", side=mechanism.name, direction=direction, quantity=BYTES)
            if len(found) > 1:
                exponents[direction] = slope([r.T for r in found], [r.value for r in found])
        if mechanism.name == "dense":
            return Slope(exponents, DENSE_SLOPE)
        return Slope(exponents, (-math.inf, LINEAR_SLOPE) if mechanism.linear else None)

    def approximations(self) -> list[Approximation]:
        """Every approximation at every value of its cost parameter."""
        dense = self.values(part="errors", side="dense", quantity=SECONDS)
        found = []
        for record in self.select(part="errors", quantity=ERROR):
            times = self.values(part="errors", side=record.side, cost=record.cost, quantity=SECONDS)
            time = statistics.median(ratios(times, dense))
            found.append(Approximation(record.side, record.cost, record.value, time))
        return found

    def write(self, path: Path) -> None:
        """As CSV."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(Record._fields)
                writer.writerows((*record[:-1], f"{record.value:.6g}") for record in self.records)
        except OSError as error:
            raise RunError(f"could not write {path}: {error.strerror or error}") from error

    @classmethod
    def read(cls, path: Path) -> "Results":
        """From a CSV that `write` wrote."""
        kinds = [Record.__annotations__[name] for name in Record._fields]
        try:
            with path.open(newline="") as file:
                header, *rows = csv.reader(file)
            if tuple(header) != Record._fields:
                raise ValueError(f"its columns are {', '.join(header)}")
            return cls(Record(*(kind(x) for kind, x in zip(kinds, row, strict=True))) for row in rows)
        except (OSError, ValueError) as error:
            raise UserError(f"{path} is not a CSV of this benchmark: {error}") from error
