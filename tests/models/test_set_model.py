"""Every encoder with every head: padding, company and empty sets change nothing; mistakes are one line."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models import set_model
from models.encoders import ENCODERS
from models.layers.pooling import POOLS
from tests.models.parameters import filled, normal

T, C, D, K = 5, 3, 6, 4
LENGTHS = (5, 3, 0)
MASK = jnp.arange(T)[None] < jnp.asarray(LENGTHS)[:, None]
FRAMES = normal(len(LENGTHS), T, C)

MODELS = {
    "window_fc": {"kind": "window_fc", "window": (1, 2), "hidden_dim": 7},
    "cnn": {"kind": "cnn", "num_layers": 2, "dilation": 2},
    "cnn without norm": {"kind": "cnn", "num_layers": 1, "kernel_size": 4, "norm": "none"},
    "multi_width_cnn": {"kind": "multi_width_cnn", "widths": (2, 3)},
    "gated_cnn": {"kind": "gated_cnn", "num_layers": 2, "kernel_size": 4, "hidden_dim": 7},
    "bidirectional lstm": {"kind": "rnn", "num_layers": 2},
    "gru": {"kind": "rnn", "cell": "gru", "bidirectional": False, "hidden_dim": 5},
    "plain": {"kind": "rnn", "cell": "plain"},
    "transformer": {"kind": "transformer", "num_layers": 1, "num_heads": 2, "hidden_dim": 7},
    "rotary transformer": {
        "kind": "transformer",
        "num_layers": 1,
        "num_heads": 3,
        "positions": {"kind": "rotary"},
        "attention": {"kind": "banded", "window": (1, 1)},
    },
    "learned positions": {"kind": "window_fc", "positions": {"kind": "learned", "max_length": 9}},
}
HEADS = {
    "vector": {},
    "crf": {"crf": True},
    **{pool: {"pool": pool} for pool in POOLS if pool != "self_attentive"},
    "self_attentive": {"pool": "self_attentive", "hops": 2, "attention_dim": 5, "penalty_weight": 0.1},
}


def make(model, head="vector", **fields):
    config = {"dim": D, **MODELS[model], "head": HEADS[head], **fields}
    per = "vector" if head in ("vector", "crf") else "set"
    return filled(set_model.build, config, inputs={"frames": C}, outputs=K, per=per)


def test_every_encoder_is_tried():
    nothing_to_try = {"none"}
    assert {model["kind"] for model in MODELS.values()} == set(ENCODERS) - nothing_to_try


def batch(frames, mask, garbage=jnp.nan):
    return {"frames": jnp.where(mask[..., None], frames, garbage), "mask": mask}


TOGETHER = batch(FRAMES, MASK)
FURTHER = batch(jnp.pad(FRAMES, ((0, 0), (0, 3), (0, 0))), jnp.pad(MASK, ((0, 0), (0, 3))))
ALONE = batch(FRAMES[1:2, : LENGTHS[1]], MASK[1:2, : LENGTHS[1]])


@functools.cache
def encoded(model, class_token):
    """The vectors that a head sees, of all three batches.

    With a class token there is one frame less, so that the encoder's shapes stay the same.
    """
    built = make(model, "class" if class_token else "mean")
    built.head = Given()
    return [
        run(built, batch(each["frames"][:, :-1], each["mask"][:, 1:]) if class_token else each)
        for each in (TOGETHER, FURTHER, ALONE)
    ]


class Given(nnx.Module):
    """A head that passes on what it sees."""

    def __call__(self, x, mask, *, train, rngs):
        return x, mask


run = jax.jit(lambda model, batch: model(batch))
answer = jax.jit(lambda head, x, mask: head(x, mask))
decode = jax.jit(lambda head, logits, mask: head.decode(logits, mask))


# A head sees nothing but vectors and a mask, so every model has one head, and every head one model.
PAIRS = [(model, "vector") for model in MODELS] + [("plain", head) for head in HEADS if head != "vector"]


@pytest.mark.parametrize("model, head", [*PAIRS, ("transformer", "class")])
def test_alone_in_a_batch_or_padded_further_is_the_same(model, head):
    built = make(model, head).head
    vectors = encoded(model, head == "class")
    for x, mask in vectors:
        np.testing.assert_array_equal(x[~mask], 0)
    together, further, alone = (answer(built, x, mask) for x, mask in vectors)
    assert together.logits.dtype == jnp.float32
    if head in ("vector", "crf"):
        for row, length in enumerate(LENGTHS):
            np.testing.assert_allclose(
                further.logits[row, :length], together.logits[row, :length], rtol=1e-5, atol=1e-5
            )
        np.testing.assert_allclose(alone.logits[0], together.logits[1, :3], rtol=1e-5, atol=1e-5)
        assert together.logits.shape == (3, T, K)
        decoded = [
            decode(built, o.logits, m) for o, (_, m) in zip((together, further, alone), vectors, strict=True)
        ]
        np.testing.assert_array_equal(decoded[0], decoded[1][:, :T])
        np.testing.assert_array_equal(decoded[0][1, :3], decoded[2][0])
    else:
        assert together.logits.shape == (3, K)
        np.testing.assert_allclose(further.logits, together.logits, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(alone.logits[0], together.logits[1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(further.penalty, together.penalty, rtol=1e-5)
    np.testing.assert_allclose(alone.penalty[0], together.penalty[1], rtol=1e-5)
    assert all(jnp.isfinite(leaf).all() for leaf in (*together, *further))


def gradients(model, head, train):
    """By a loss that feels every output, with two kinds of garbage at padding."""
    structure, params, rest = nnx.split(make(model, head), nnx.Param, ...)
    tags = jnp.array([[0, 1, 2, 3, 3], [2, 1, 0, 0, 0], [0] * 5], jnp.int32)

    @jax.jit
    def gradient(batch):
        def loss(params):
            built = nnx.merge(structure, params, rest, copy=True)
            output = built(batch, train=train)
            total = jnp.sin(output.logits).sum() + output.penalty.sum()
            return total + (built.head.loss(output.logits, tags, MASK).sum() if head == "crf" else 0)

        return jax.grad(loss)(params)

    return gradient(TOGETHER), gradient(batch(FRAMES, MASK, -7.0))


@pytest.mark.parametrize(
    "model, head",
    [
        (model, "mean" if model == "gru" else "class") for model in MODELS
    ]  # from the left, a first one is blind
    + [("plain", "crf"), ("plain", "self_attentive")],
)
def test_gradients_reach_every_parameter_and_no_padding(model, head):
    found, other = gradients(model, head, train=True)
    for path, leaf in jax.tree_util.tree_leaves_with_path(found):
        name = jax.tree_util.keystr(path)
        # What a normalisation subtracts, or adds to all scores of a query, has no effect.
        without_effect = ("taps" in name or "key" in name) and "bias" in name
        assert jnp.isfinite(leaf).all(), name
        assert without_effect or (leaf != 0).any(), name
    for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_class_token_comes_first_and_is_part_of_the_set():
    built = make("transformer", "class")
    seen = {}
    built.head = lambda x, mask, **_: None
    built.encoder = lambda x, mask, **_: seen.update(x=x, mask=mask)
    built(TOGETHER)
    np.testing.assert_array_equal(seen["mask"], [[True] * 6, [True] * 4 + [False] * 2, [False] * 6])
    np.testing.assert_array_equal(seen["x"][:, 0], jnp.broadcast_to(built.class_token[...], (3, D)))
    np.testing.assert_array_equal(seen["x"][:, 1:], built.inputs(TOGETHER)[0])


def test_one_dropout_rate_for_all_parts_that_name_no_other():
    config = {"kind": "rnn", "dim": D, "dropout_rate": 0.25, "head": {"dropout_rate": 0.5}}
    build = functools.partial(
        set_model.build, inputs={"words": 9, "affixes": (3, 4)}, outputs=K, per="vector"
    )
    built = filled(build, config | {"inputs": {"word_dropout_rate": 0.125}})
    assert built.inputs.dropout.rate == built.encoder.dropout.rate == 0.25
    assert built.inputs.word_dropout_rate == 0.125
    assert built.head.dropout.rate == 0.5


# Biases in brackets: 3 x 6 (+ 6) for the inputs and 6 x 4 (+ 4) for the head are 52 of each.
GOLDEN = {
    "window_fc": 52 + 4 * 6 * 7 + 7 + 7 * 6 + 6,
    "cnn": 52 + 2 * (3 * 6 * 6 + 6 + 2 * 6),
    "cnn without norm": 52 + 4 * 6 * 6 + 6,
    "multi_width_cnn": 52 + 2 * 6 * 3 + 3 + 3 * 6 * 3 + 3,
    "gated_cnn": 52 + 6 * 7 + 7 + 2 * (4 * 7 * 14 + 14) + 7 * 6 + 6,
    "bidirectional lstm": 52 + 2 * 2 * (6 * 12 + 12 + 3 * 12),
    "gru": 52 + 6 * 15 + 15 + 5 * 15 + 5 * 6 + 6,
    "plain": 52 + 2 * (6 * 3 + 3 + 3 * 3),
    "transformer": 52 + 4 * (6 * 6 + 6) + 6 * 7 + 7 + 7 * 6 + 6 + 3 * 12,
    "rotary transformer": 52 + 4 * (6 * 6 + 6) + 6 * 24 + 24 + 24 * 6 + 6 + 3 * 12,
    "learned positions": 52 + 9 * 6 + 5 * 6 * 24 + 24 + 24 * 6 + 6,
}


@pytest.mark.parametrize("model", MODELS)
def test_parameters(model):
    state = nnx.state(make(model), nnx.Param)
    assert sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(state)) == GOLDEN[model]


@pytest.mark.parametrize(
    "model, message",
    [
        ({"kind": "rrn"}, "unknown model 'rrn'. Did you mean 'rnn'? Allowed: cnn, gated_cnn"),
        ({"kind": "rnn", "dim": 0}, "config.model.dim is 0; it must be an integer from 1 on"),
        ({"kind": "rnn", "num_heads": 2}, "unknown field of config.model for kind 'rnn' 'num_heads'"),
        ({"kind": "rnn", "num_layers": 0}, "config.model.num_layers is 0; it must be at least 1"),
        ({"kind": "rnn", "cell": "lsmt"}, "config.model: cell is 'lsmt'; it must be one of"),
        ({"kind": "cnn", "dropout_rate": 1.0}, "must be in [0, 1)"),
        (
            {"kind": "cnn", "head": {"pol": "max"}},
            "unknown field of config.model.head 'pol'. Did you mean 'pool'?",
        ),
        ({"kind": "cnn", "head": {"pool": "mex"}}, "config.model.head: pool is 'mex'; it must be one of"),
        ({"kind": "cnn", "inputs": {"stack": 0}}, "config.model.inputs.stack is 0; it must be at least 1"),
        ({"kind": "cnn", "inputs": {"frames": 2}}, "unknown field of config.model.inputs 'frames'"),
        (
            {"kind": "cnn", "positions": {"kind": "alibi"}},
            "config.model.positions.kind 'alibi' is part of attention",
        ),
        ({"kind": "cnn", "positions": {"kind": "leraned"}}, "'leraned'. Did you mean 'learned'?"),
        ({"kind": "transformer", "num_heads": 5}, "dim 6 is not divisible by num_heads 5"),
        ({"kind": "transformer", "attention": {"kind": "dott"}}, "'dott'"),
    ],
)
def test_a_mistake_in_a_config_is_one_line(model, message):
    config = {"dim": D, "head": {"pool": "mean"}, **model}
    with pytest.raises(UserError) as error:
        nnx.eval_shape(
            lambda: set_model.build(config, inputs={"frames": C}, outputs=K, per="set", rngs=nnx.Rngs(0))
        )
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_stacked_frames_have_no_label_each():
    with pytest.raises(
        UserError, match=r"config.model.inputs.stack is 2; with a label for every frame it must be 1"
    ):
        make("cnn", inputs={"stack": 2})


def test_a_sequence_longer_than_the_table_of_positions_is_refused():
    long = {"frames": jnp.zeros((1, 10, C)), "mask": jnp.ones((1, 10), bool)}
    with pytest.raises(UserError, match=r"10.* 9"):
        make("learned positions")(long)
