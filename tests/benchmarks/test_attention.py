"""The benchmark of the mechanisms: its arithmetic, its verdicts, and what its sides compute."""

import csv
import importlib.util
import io
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from rich.console import Console

import attention as ours
from attention import masks
from benchmarks import attention, attention_figure, attention_tables, attention_timing
from benchmarks.attention_cases import LIBRARIES, MECHANISMS, TARGETS, Target, mechanism, unit
from benchmarks.attention_results import BYTES, ERROR, SECONDS, Record, Results
from benchmarks.attention_timing import BOTH, FORWARD, Program, by_turns, draw, slope
from errors import UserError

SHAPE = (2, 12, 2, 8)


# --- timing ----------------------------------------------------------------------------------


class Clock:
    """Time that passes only while a side runs."""

    def __init__(self, monkeypatch):
        self.now, self.turns = 0.0, []
        monkeypatch.setattr(attention_timing.time, "perf_counter", lambda: self.now)

    def side(self, name: str, seconds: float):
        def run():
            self.now += seconds
            self.turns.append(name)

        return run


def test_sides_alternate_and_times_are_those_of_a_call(monkeypatch):
    clock = Clock(monkeypatch)
    times = by_turns({"a": clock.side("a", 2.0), "b": clock.side("b", 3.0)}, rounds=4, seconds=100.0)
    assert times == {"a": [2.0] * 4, "b": [3.0] * 4}
    assert clock.turns[-8:] == ["a", "b"] * 4


def test_short_calls_are_repeated_in_a_turn(monkeypatch):
    clock = Clock(monkeypatch)
    assert by_turns({"a": clock.side("a", 0.5**10)}, rounds=1, seconds=9.0)["a"] == [0.5**10]
    assert clock.now > attention_timing.TURN


def test_rounds_are_as_many_as_fit_but_three_at_least(monkeypatch):
    clock = Clock(monkeypatch)
    assert len(by_turns({"a": clock.side("a", 2.0)}, rounds=9, seconds=12.0)["a"]) == 6
    assert len(by_turns({"a": clock.side("a", 2.0)}, rounds=9, seconds=1.0)["a"]) == 3


def test_a_side_that_is_far_behind_is_left_out(monkeypatch):
    clock = Clock(monkeypatch)
    sides = {"a": clock.side("a", 2.0), "b": clock.side("b", 5.0)}
    assert by_turns(sides, rounds=4, seconds=99.0, within=2.0) == {"a": [2.0] * 4, "b": [5.0]}
    assert clock.turns.count("b") == 1


def test_slope_of_a_power_law():
    assert slope([2, 4, 8], [12.0, 48.0, 192.0]) == pytest.approx(2.0)
    assert slope([2, 4, 8], [0.0, 0.0, 0.0]) == 0.0


# --- programs --------------------------------------------------------------------------------


def test_a_program_computes_the_loss_and_its_gradients():
    @jax.jit
    def expected(query, key, value, cotangent):
        out, transpose = jax.vjp(jax.nn.dot_product_attention, query, key, value)
        return jnp.sum(out * cotangent), transpose(cotangent)

    found = Program(jax.nn.dot_product_attention, SHAPE, BOTH).bind()()
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected(*draw(SHAPE))), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_programs_are_told_apart_by_what_they_compute():
    reference = Program(jax.nn.dot_product_attention, SHAPE, FORWARD)
    assert Program(lambda q, k, v: jax.nn.dot_product_attention(q, k, v), SHAPE, FORWARD).identity == (
        reference.identity
    )
    assert Program(nnx.dot_product_attention, SHAPE, FORWARD).identity == reference.identity  # as it says
    assert Program(lambda q, k, v: 2 * v, SHAPE, FORWARD).identity != reference.identity


def test_scores_count_as_memory_even_if_a_library_of_xla_holds_them():
    T = 512
    assert mechanism("dense").program((1, T, 1, 16), FORWARD).temporary_bytes >= 4 * T * T


@pytest.mark.parametrize("name", [found.name for found in MECHANISMS])
def test_every_mechanism_can_be_differentiated(name):
    shape = (1, 256, 2, 16)
    loss, gradients = mechanism(name).program(shape, BOTH).out_info
    assert loss.shape == ()
    assert [gradient.shape for gradient in gradients] == [shape] * 3


def test_a_mechanism_of_shared_vectors_gets_unit_keys():
    reformer = mechanism("Reformer")._replace(build=lambda m, shape, cost: lambda q, k, v, **arrays: k)
    out = reformer.program((1, 64, 1, 4), FORWARD).bind()()
    np.testing.assert_allclose(out, unit(draw((1, 64, 1, 4))[0]), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(out, axis=-1), 1.0, atol=1e-6)


def test_names_are_unique_and_known():
    names = [found.name for found in MECHANISMS]
    assert len(set(names)) == len(names)
    assert {target.ours for target in TARGETS} <= set(names)
    assert {library.mechanism for library in LIBRARIES} <= set(names)
    assert set(attention.BACKWARD) <= set(names)
    assert not {library.package for library in LIBRARIES} & set(names)  # both are sides of one race
    for library in LIBRARIES:
        assert library.cost in (0, *mechanism(library.mechanism).costs)


# --- results ---------------------------------------------------------------------------------


def seconds(part, side, values, *, direction=FORWARD, shape=SHAPE, program=None):
    return [
        Record(part, side, program or side, direction, *shape, 0, SECONDS, number, value)
        for number, value in enumerate(values)
    ]


def test_a_verdict_compares_round_by_round():
    results = Results(seconds("targets", "x", [1, 2, 4]) + seconds("targets", "y", [3, 8, 8]))
    found = results.verdict(Target("x", "y", {FORWARD: 3.0}), FORWARD)  # ratios 3, 4, 2
    assert found == (SHAPE, (2.5, 3.0, 3.5), True)
    assert not results.verdict(Target("x", "y", {FORWARD: 3.1}), FORWARD).met


def test_rates_count_the_work():
    results = Results(seconds("targets", "x", [7.0, 7.0]) + seconds("targets", "y", [1.0, 1.0]))
    target = Target("x", "y", {FORWARD: 0.5}, work={FORWARD: 3.5})
    assert results.verdict(target, FORWARD) == (SHAPE, (0.5, 0.5, 0.5), True)


def test_no_verdict_without_the_peer():
    assert Results(seconds("targets", "x", [1, 2])).verdict(Target("x", "y", {}), FORWARD) is None


def test_the_choice_is_held_against_the_best_other_side():
    times = {"auto": [11.0, 11.0, 33.0], "dense": [10.0, 10.0, 20.0], "torch": [30.0]}
    results = Results(r for side, values in times.items() for r in seconds("auto", side, values))
    (choice,) = results.choices(FORWARD)
    assert choice == (SHAPE, "auto", "dense", pytest.approx((1.1, 1.1, 1.375)))
    assert results.worst_choice(FORWARD) == (choice, True)


def test_a_choice_that_was_left_out_of_the_rounds_is_still_judged():
    records = seconds("auto", "auto", [30.0], program="dense") + seconds("auto", "torch", [10.0, 10.0])
    choice, met = Results(records).worst_choice(FORWARD)
    assert choice == (SHAPE, "dense", "torch", (3.0, 3.0, 3.0))
    assert not met


@pytest.mark.parametrize(
    ("name", "power", "met"),
    [("dense", 2.0, True), ("dense", 1.5, False), ("blockwise", 1.0, True), ("blockwise", 1.2, False)],
)
def test_the_slope_of_memory_in_either_direction(name, power, met):
    records = [
        Record("lengths", name, name, direction, 1, T, 4, 64, 0, BYTES, 0, 7.0 * T**exponent)
        for direction, exponent in ((FORWARD, 2.0 if name == "dense" else 1.0), (BOTH, power))
        for T in (512, 2048, 8192)
    ]
    found = Results(records).slope(mechanism(name))
    assert found.exponents[BOTH] == pytest.approx(power)
    assert found.met == met
    assert Results(records[:1]).slope(mechanism(name)).exponents == {}


def test_errors_go_with_the_time_in_that_of_dense():
    records = seconds("errors", "dense", [1.0, 2.0, 4.0]) + seconds("errors", "x", [2.0, 2.0, 2.0])
    records.append(Record("errors", "x", "x", FORWARD, *SHAPE, 0, ERROR, 0, 0.25))
    assert Results(records).approximations() == [("x", 0, 0.25, 1.0)]


def test_written_measurements_are_read_back(tmp_path):
    records = seconds("auto", "auto", [0.25, 0.5], program="dense")
    Results(records).write(tmp_path / "new" / "a.csv")
    assert Results.read(tmp_path / "new" / "a.csv").records == records
    with (tmp_path / "new" / "a.csv").open(newline="") as file:
        assert next(csv.reader(file)) == list(Record._fields)


def test_another_csv_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("part,value\nauto,1\n")
    with pytest.raises(UserError, match=r"a\.csv is not a CSV of this benchmark: its columns are"):
        Results.read(tmp_path / "a.csv")


def test_relative_error():
    assert attention.relative_error([3.0, 0.0], np.float32([0.0, 4.0])) == pytest.approx(1.25)


# --- the command -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--preset=quik", "unknown preset 'quik'. Did you mean 'quick'"),
        ("--threads=0", "--threads is 0"),
        ("--nonsense", "unrecognized arguments"),
    ],
)
def test_wrong_arguments_are_one_line(argument, message):
    with pytest.raises(UserError, match=message):
        attention.parse([argument])


def test_every_part_runs_and_everything_is_shown(monkeypatch, tmp_path):
    few = [mechanism("dense"), mechanism("blockwise"), mechanism("banded")._replace(costs=(4,))]
    for module in (attention, attention_tables, attention_figure):
        monkeypatch.setattr(module, "MECHANISMS", few)
    monkeypatch.setattr(attention, "installed", lambda module: False)
    monkeypatch.setattr(attention, "BACKWARD", ("dense",))
    monkeypatch.setattr("benchmarks.attention_cases.MATMUL", 16)
    monkeypatch.setattr(attention_timing, "TURN", 0.0)
    monkeypatch.setattr(attention, "at_length", lambda T: (1, T, 1, 8))  # the programs of the other parts
    tiny = attention.Preset(
        lengths=(16, 32),
        rounds=2,
        seconds=0.01,
        backward=False,
        patient=False,
        long=(1, 16, 1, 8),
        band=(1, 16, 1, 8),
        grid=((1, 16, 1, 8),),
        at=(1, 16, 1, 8),
    )
    benchmark = attention.Benchmark(tiny, tuple(os.sched_getaffinity(0)), "plain", tmp_path / "found")
    console = Console(width=120, file=io.StringIO())
    benchmark.run(console)
    for table in attention_tables.all_of(benchmark.results):
        console.print(table)
    console.print(attention.conditions(benchmark, 1.0))
    console.print(attention_tables.summary(benchmark.results))
    shown = console.file.getvalue()
    for target in TARGETS:
        assert target.peer in shown
    assert "not installed, so left out: torch, x-transformers" in shown
    assert "of 10 of speed" in shown  # torch is not there
    assert all(found.name in shown for found in few)
    assert "auto" in benchmark.results.sides(part="auto")
    assert len(benchmark.results.choices(BOTH)) == 1
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["found.csv", "found.png", "found.svg"]
    assert [r[:-1] for r in Results.read(tmp_path / "found.csv").records] == (
        [r[:-1] for r in benchmark.results.records]
    )


def test_names_beside_lines_are_moved_apart_as_little_as_need_be():
    assert attention_figure._apart([0.0, 10.0, 30.0], 9.0) == [0.0, 10.0, 30.0]
    assert attention_figure._apart([4.0, 4.0, 30.0], 10.0) == [-1.0, 9.0, 30.0]
    assert attention_figure._apart([0.0, 1.0, 2.0], 10.0) == [-9.0, 1.0, 11.0]


# --- peers -----------------------------------------------------------------------------------


def peer_output(library, shape):
    from benchmarks import attention_peers

    if library is None:
        return np.asarray(attention_peers.bind(attention_peers.fused, shape, FORWARD)())
    if importlib.util.find_spec(library.module.split(".")[0]) is None:
        pytest.skip(f"{library.package} is in the extra 'bench'")
    function = attention_peers.build(library, shape)
    both = attention_peers.bind(function, shape, BOTH)()
    assert all(x is None or x.isfinite().all() for x in both)
    return np.asarray(attention_peers.bind(function, shape, FORWARD)().detach())


def test_torch_computes_what_we_compute():
    pytest.importorskip("torch", reason="PyTorch is in the extra 'bench'")
    out = ours.dot_product_attention(*map(jnp.asarray, draw(SHAPE)[:3]))
    np.testing.assert_allclose(peer_output(None, SHAPE).swapaxes(1, 2), out, atol=2e-6)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_libraries_run_and_the_exact_ones_compute_what_we_compute(library):
    pytest.importorskip("torch", reason="PyTorch is in the extra 'bench'")
    shape = (1, 256, 2, 16)
    out = peer_output(library, shape).swapaxes(1, 2)
    assert out.shape == shape
    mask = {
        "x-transformers": None,
        "local-attention": masks.band(256, 256, (library.cost, library.cost), batch_dims=1),
    }
    if library.package in mask:
        query, key, value = map(jnp.asarray, draw(shape)[:3])
        expected = ours.dot_product_attention(query, key, value, mask=mask[library.package])
        np.testing.assert_allclose(out, expected, atol=2e-6)
