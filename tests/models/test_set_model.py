"""Taggers and classifiers: inputs, positions, encoder and head in a row; mistakes of one line."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.layers.pooling import POOLS
from models.set_model import CLASSIFIER, TAGGER
from tests.models.parameters import filled, normal, real, shaped

T, C, D, K = 5, 3, 6, 4
LENGTHS = (5, 3, 0)
MASK = real(*LENGTHS, of=T)
FRAMES = np.asarray(normal(len(LENGTHS), T, C))
TAGS = np.array([[0, 1, 2, 3, 3], [2, 1, 0, 0, 0], [0] * 5], np.int32)

ENCODER = {"kind": "window_fc", "window": (1, 2), "hidden_dim": 7}
LEARNED = {"kind": "learned", "max_length": 9}


def make(head, registry=CLASSIFIER, build=filled, **fields):
    block = {"dim": D, "inputs": "frames", "encoder": ENCODER, "positions": LEARNED, "head": head, **fields}
    return build(registry.build, block, "config.model", columns={"frames": C}, num_outputs=K)


def batch(garbage=np.nan):
    return {"frames": np.where(MASK[..., None], FRAMES, np.float32(garbage)), "mask": MASK}


@jax.jit
def learn(model, batch, tags):
    """What is said of a batch, and gradients by a loss that feels every output."""
    structure, params = nnx.split(model)

    def loss(params):
        built = nnx.merge(structure, params)
        output = built(batch)
        total = jnp.sin(output.logits).sum() + output.penalty.sum()
        tagger = output.logits.ndim == 3
        return total + (built.head.loss(output.logits, tags, batch["mask"]).sum() if tagger else 0), output

    gradients, output = jax.grad(loss, has_aux=True)(params)
    return output, gradients


@pytest.mark.parametrize(
    "head",
    [
        {"crf": True},
        *({"pool": pool} for pool in POOLS if pool in ("last", "max", "class")),
        {"pool": {"kind": "self_attentive", "hops": 2, "attention_dim": 5, "penalty_weight": 0.1}},
    ],
    ids=str,
)
def test_padding_and_company_change_nothing(head):
    """What padding holds neither, nor how much there is, in values and gradients, which reach every part."""
    tagger = "crf" in head
    model = make(head, TAGGER if tagger else CLASSIFIER)
    (together, gradients), (dirty, others) = (learn(model, batch(garbage), TAGS) for garbage in (np.nan, -7))
    assert together.logits.shape == ((3, T, K) if tagger else (3, K))
    for one, two in zip(
        jax.tree.leaves((together, gradients)), jax.tree.leaves((dirty, others)), strict=True
    ):
        np.testing.assert_array_equal(one, two)
        assert np.isfinite(one).all()
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradients):
        assert (np.asarray(leaf) != 0).any(), jax.tree_util.keystr(path)
    alone = jax.jit(lambda model, batch: model(batch))(
        model, {name: column[1:2, : LENGTHS[1]] for name, column in batch().items()}
    )
    expected = together.logits[1, : LENGTHS[1]] if tagger else together.logits[1]
    np.testing.assert_allclose(alone.logits[0], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(alone.penalty[0], together.penalty[1], rtol=1e-5)


def test_the_class_token_comes_first_and_is_part_of_the_set():
    model = make({"pool": "class"}, positions="none")

    @jax.jit
    def seen(model, batch):
        found = {"given": model.inputs(batch)[0], "token": model.class_token[...]}
        model.head = lambda x, mask, **_: None
        model.encoder = lambda x, mask, **_: found.update(x=x, mask=mask)
        model(batch)
        return found

    found = seen(model, batch())
    np.testing.assert_array_equal(found["mask"], [[True] * 6, [True] * 4 + [False] * 2, [False] * 6])
    np.testing.assert_array_equal(found["x"][:, 0], np.broadcast_to(found["token"], (3, D)))
    np.testing.assert_array_equal(found["x"][:, 1:], found["given"])


@pytest.mark.parametrize(
    "block, message",
    [
        (
            {"encoder": "rrn"},
            "unknown encoder in config.model.encoder 'rrn'. Did you mean 'rnn'? Allowed: cnn, gat",
        ),
        ({"dim": 0}, "config.model.dim is 0; it must be an integer, at least 1"),
        (
            {"encoder": {"kind": "rnn", "num_heads": 2}},
            "config.model.encoder with kind 'rnn' has no field 'num_heads'",
        ),
        (
            {"encoder": {"kind": "rnn", "dim": 2}},
            "unknown field of config.model.encoder with kind 'rnn' 'dim'",
        ),
        (
            {"encoder": "cnn", "head": {"pool": "mex"}},
            "unknown pool in config.model.head.pool 'mex'. Did you mean 'm",
        ),
        ({"encoder": "cnn", "head": {"crf": True}}, "unknown field of config.model.head 'crf'"),
        (
            {"inputs": {"kind": "frames", "frames": 2}},
            "unknown field of config.model.inputs with kind 'frames' 'frames'",
        ),
        (
            {"inputs": "words"},
            "config.model.inputs.kind is 'words'; the data set has frames, so it must be 'frames'",
        ),
        (
            {"positions": "alibi"},
            "unknown absolute positions (relative ones are of a transformer encoder or decoder)",
        ),
        (
            {"encoder": {"kind": "transformer", "num_heads": 5}},
            "config.model.encoder: dim 6 is not divisible by num_h",
        ),
        (
            {"encoder": {"kind": "transformer", "attention": "dott"}},
            "in config.model.encoder.attention 'dott'",
        ),
        ({"num_outputs": 3}, "unknown field of config.model 'num_outputs'"),
        ({"kind": "rnn"}, "unknown field of config.model 'kind'"),
    ],
)
def test_a_mistake_in_a_config_is_one_line(block, message):
    with pytest.raises(UserError) as error:
        make({"pool": "mean"} | block.pop("head", {}), build=shaped, **{"positions": "none", **block})
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_stacked_frames_have_no_label_each():
    with pytest.raises(
        UserError, match=r"config.model.inputs.stack is 2; with a label for every frame it must be 1"
    ):
        make({}, TAGGER, shaped, inputs={"kind": "frames", "stack": 2})
    assert make({}, CLASSIFIER, shaped, inputs={"kind": "frames", "stack": 2})


def test_a_sequence_longer_than_the_table_of_positions_is_refused():
    long = {"frames": np.zeros((1, 10, C), np.float32), "mask": np.ones((1, 10), bool)}
    with pytest.raises(UserError, match=r"10.* 9"):
        jax.eval_shape(lambda model: model(long), make({}, build=shaped))
