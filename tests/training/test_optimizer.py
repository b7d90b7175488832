"""Update rules, decay and schedules, with a pencil."""

import dataclasses
import math
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.images import IMAGE_MODELS
from models.images.cnn import CNN
from models.images.vit import ViT
from spec import spec
from training.optimizer import OPTIMIZERS, SGD, AdamW, Lion, Schedule, decayed

KERNEL, BIAS = np.array([1.0, -2.0]), np.array([0.5])
UNTOUCHED = {"weight_decay": 0.0, "clip_norm": None}
GRADIENTS = [(np.array([3.0, 0.0]), np.array([4.0])), (np.array([0.1, -0.2]), np.array([0.2]))]


def updates(optimizer):
    """Two updates of (kernel, bias) for a learning rate of 1, at the same parameters."""
    rule = optimizer.transformation()

    def tree(kernel, bias):
        return {"layer": {"kernel": jnp.asarray(kernel, jnp.float32), "bias": jnp.asarray(bias, jnp.float32)}}

    state, found = rule.init(tree(KERNEL, BIAS)), []
    for gradient in GRADIENTS:
        with jax.numpy_dtype_promotion("standard"):  # optax raises floats to integer powers
            update, state = rule.update(tree(*gradient), state, tree(KERNEL, BIAS))
        found.append((update["layer"]["kernel"], update["layer"]["bias"]))
    return found


def assert_close(found, expected):
    for one, two in zip(found, expected, strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_adamw_is_its_formula():
    expected, first, second = [], [0.0, 0.0], [0.0, 0.0]
    for t, gradient in enumerate(GRADIENTS, start=1):
        # The first gradient has norm 5 and is cut down to 2; the second has norm 0.3 and is not.
        norm = math.sqrt(sum((g**2).sum() for g in gradient))
        gradient = [g * min(1, 2 / norm) for g in gradient]
        first = [0.9 * m + 0.1 * g for m, g in zip(first, gradient, strict=True)]
        second = [0.99 * v + 0.01 * g**2 for v, g in zip(second, gradient, strict=True)]
        kernel, bias = (
            m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8) for m, v in zip(first, second, strict=True)
        )
        expected.append((kernel + 0.1 * KERNEL, bias))  # decay is decoupled, and spares the bias
    assert_close(updates(AdamW(weight_decay=0.1, clip_norm=2.0)), expected)


def test_lion_is_the_sign_of_a_moment():
    (kernel, bias), (kernel2, bias2) = GRADIENTS
    expected = [
        (np.sign(kernel), np.sign(bias)),
        tuple(np.sign(0.9 * 0.01 * g + 0.1 * g2) for g, g2 in ((kernel, kernel2), (bias, bias2))),
    ]
    assert_close(updates(Lion(**UNTOUCHED)), expected)


def test_sgd_has_nesterov_momentum():
    (kernel, bias), (kernel2, bias2) = GRADIENTS
    expected = [
        (1.9 * kernel, 1.9 * bias),
        tuple(g2 + 0.9 * (g2 + 0.9 * g) for g, g2 in ((kernel, kernel2), (bias, bias2))),
    ]
    assert_close(updates(SGD(**UNTOUCHED)), expected)


def test_a_clip_norm_of_none_clips_nothing():
    plain = SGD(momentum=0.0, **UNTOUCHED)
    assert_close(updates(plain)[:1], GRADIENTS[:1])
    clipped = dataclasses.replace(plain, clip_norm=1.0)
    assert_close(updates(clipped)[:1], [(GRADIENTS[0][0] / 5, np.array([0.8]))])


@pytest.mark.parametrize(
    "model, spared",
    [
        (
            spec(ViT, patch_size=4, dim=8, num_layers=1, num_heads=2, pool="class", attention="cosine"),
            {"bias", "scale", "position_table", "class_token", "log_sharpness"},
        ),
        (spec(CNN, widths=(4,), blocks=(1,)), {"bias", "scale"}),
    ],
    ids=["vit", "cnn"],
)
def test_kernels_alone_are_decayed(model, spared):
    built = nnx.eval_shape(
        lambda: IMAGE_MODELS.build(model, image_shape=(8, 8, 1), num_classes=3, rngs=nnx.Rngs(0))
    )
    by_name = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(
        decayed(nnx.to_pure_dict(nnx.state(built, nnx.Param)))
    ):
        by_name.setdefault(path[-1].key, set()).add(leaf)
    assert by_name == {"kernel": {True}, **{name: {False} for name in spared}}


def rates(num_steps=10, **fields):
    optimizer = SGD(**{"learning_rate": 0.6, "schedule": "constant", "warmup": 0.2} | fields)
    found = optimizer.learning_rates(num_steps)
    assert found.dtype == np.float32
    assert found.shape == (num_steps,)
    return found / 0.6


@pytest.mark.parametrize(
    "schedule, last",
    [
        ("constant", 1.0),
        ("linear", 1 / 8),  # 7 of the 8 steps after warm-up are done
        ("cosine", (1 + math.cos(math.pi * 7 / 8)) / 2),
        ("inverse_sqrt", math.sqrt(3 / 10)),
    ],
)
def test_schedules_at_the_first_the_warm_up_and_the_last_step(schedule, last):
    found = rates(schedule=schedule)
    np.testing.assert_allclose(found[[0, 1, 2, 9]], [1 / 3, 2 / 3, 1, last], rtol=1e-6)
    assert (np.diff(found[2:]) <= 0).all()


@pytest.mark.parametrize("schedule", get_args(Schedule))
def test_without_warm_up_it_starts_at_the_peak_and_with_all_of_it_it_never_gets_there(schedule):
    assert rates(schedule=schedule, warmup=0.0)[0] == pytest.approx(1.0)
    np.testing.assert_allclose(rates(schedule=schedule, warmup=1.0), np.arange(1, 11) / 11, rtol=1e-6)
    assert rates(num_steps=1, schedule=schedule)[0] == pytest.approx(1.0)


def test_equal_blocks_are_equal_optimizers_but_for_the_learning_rates():
    """Those are not part of the compiled step."""
    block = spec(Lion, momentum=0.8, second_momentum=0.7, weight_decay=0.1, clip_norm=3.0)
    one = OPTIMIZERS.build(block)
    assert one == Lion(momentum=0.8, second_momentum=0.7, weight_decay=0.1, clip_norm=3.0)
    assert type(one).rule is Lion.rule
    other = OPTIMIZERS.build(
        spec(Lion, **{**block, "learning_rate": 2.0, "schedule": "linear", "warmup": 0.5})
    )
    assert (one, hash(one)) == (other, hash(other))
    for field, value in {"momentum": 0.1, "clip_norm": None, "accumulation": 2}.items():
        assert dataclasses.replace(one, **{field: value}) != one
    assert SGD() != AdamW() != Lion()


@pytest.mark.parametrize(
    ("kind", "field", "value", "said"),
    [
        ("adam", "kind", "adam", "unknown optimizer in config.optimizer 'adam'. Did you mean 'adamw'?"),
        ("sgd", "momentum", 1.0, "momentum is 1.0; it must be a number, in [0, 1)"),
        ("lion", "second_momentum", -0.1, "second_momentum is -0.1; it must be a number, in [0, 1)"),
        (
            "sgd",
            "second_momentum",
            0.1,
            "with kind 'sgd' has no field 'second_momentum', which is of adamw, lion",
        ),
        ("sgd", "learning_rate", -1.0, "learning_rate is -1.0; it must be a number, at least 0"),
        ("sgd", "weight_decay", math.inf, "weight_decay is inf; it must be a number, at least 0"),
        ("sgd", "clip_norm", math.nan, "clip_norm is nan; it must be a number, above 0, or None"),
        ("sgd", "clip_norm", 0.0, "clip_norm is 0.0; it must be a number, above 0, or None"),
        ("sgd", "accumulation", 0, "accumulation is 0; it must be an integer, at least 1"),
        ("sgd", "warmup", 1.5, "warmup is 1.5; it must be a number, in [0, 1]"),
        ("sgd", "schedule", "cosin", "schedule is 'cosin'; it must be one of cosine, linear, constant, inv"),
    ],
)
def test_what_is_not_allowed_is_one_line(kind, field, value, said):
    with pytest.raises(UserError) as caught:
        OPTIMIZERS.build({"kind": kind, field: value}, "config.optimizer")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
