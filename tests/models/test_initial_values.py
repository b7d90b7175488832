"""Initial values by name: what is added or left out changes no other array's."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.extend.random import define_prng_impl

from models.encoder_decoder import ENCODER_DECODER
from models.graphs.model import GRAPH_MODEL
from models.images import IMAGE_MODELS
from models.reader import READER
from models.set_model import CLASSIFIER, TAGGER
from tests.models.parameters import paths

LEARNED = {"kind": "learned", "max_length": 5}
TRANSFORMER = {"kind": "transformer", "num_layers": 1, "num_heads": 2, "hidden_dim": 6}
RNN = {"kind": "rnn", "cell": "plain"}
SMALL = {"dim": 4, "encoder": TRANSFORMER}

# A model, what is given to it, and what may be added; each adds arrays or makes some larger.
CASES = {
    "tagger": (
        TAGGER,
        SMALL,
        {"columns": {"words": 7}, "num_outputs": 3},
        {
            "a layer": {"encoder": {**TRANSFORMER, "num_layers": 2}},
            "a mechanism with arrays": {"encoder": {**TRANSFORMER, "attention": "shaw"}},
            "relative positions": {"encoder": {**TRANSFORMER, "positions": "t5"}},
            "learned positions": {"positions": LEARNED},
            "positions beside": {"positions": {"kind": "sinusoidal", "combine": "concatenate"}},
            "a crf": {"head": {"crf": True}},
        },
    ),
    "classifier": (
        CLASSIFIER,
        {"dim": 4, "encoder": {**RNN, "num_layers": 1}},
        {"columns": {"words": 7, "affixes": (3,)}, "num_outputs": 3},
        {
            "a layer": {"encoder": {**RNN, "num_layers": 2}},
            "another encoder": {"encoder": "gated_cnn"},
            "a class token": {"head": {"pool": "class"}},
            "a pool with arrays": {"head": {"pool": "self_attentive"}},
            "a map of affixes": {"inputs": {"kind": "words", "combine": "concatenate", "affix_dim": 3}},
        },
    ),
    "cnn": (
        IMAGE_MODELS,
        {"kind": "cnn", "widths": (2, 3), "blocks": (1, 1)},
        {"image_shape": (6, 6, 1), "num_classes": 3},
        {"a stage": {"widths": (2, 3, 3), "blocks": (1, 1, 1)}},
    ),
    "vit": (
        IMAGE_MODELS,
        {"kind": "vit", "patch_size": 3, "dim": 4, "num_layers": 1, "num_heads": 2, "positions": "none"},
        {"image_shape": (6, 6, 1), "num_classes": 3},
        {
            "learned positions": {"positions": "learned"},
            "a token": {"pool": "class"},
            "a layer": {"num_layers": 2},
        },
    ),
    "graphs": (
        GRAPH_MODEL,
        {"encoder": {"kind": "gat", "num_layers": 1, "num_heads": 2, "head_dim": 2}},
        {"node_dim": 3, "edge_dim": 0, "num_outputs": 2, "per_node": False},
        {
            "a layer": {
                "encoder": {"kind": "gat", "num_layers": 2, "num_heads": 2, "head_dim": 2, "norm": True}
            },
            "a pool with arrays": {"pool": "self_attentive"},
        },
    ),
    "encoder and decoder": (
        ENCODER_DECODER,
        {"dim": 4, "encoder": RNN, "decoder": {**RNN, "attention": "dot"}},
        {"columns": {"words": 7}, "vocab_size": 7},
        {
            "a layer of the decoder": {"decoder": {**RNN, "attention": "dot", "num_layers": 2}},
            "its attention": {"decoder": {**RNN, "attention": "general", "gate": True, "map_keys": True}},
            "another decoder": {"decoder": "convolution"},
            "a layer of logits": {"tokens": {"tie_output": False}},
            "learned positions": {"positions": LEARNED, "tokens": {"positions": LEARNED}},
        },
    ),
    "reader": (
        READER,
        {"dim": 4, "encoder": "none", "head": {"end": "independent"}},
        {"columns": {"words": 7}},
        {"self-matching": {"self_matching": "additive"}, "a step": {"head": {"end": "pointer"}}},
    ),
}


def _bits(key, width, shape):
    """Random enough, of a few operations, where those of JAX take long to compile."""
    mixed = key[0] + jax.lax.iota(np.uint32, math.prod(shape)) * np.uint32(2654435761)
    for shift, factor in ((16, 2246822507), (13, 3266489909)):
        mixed = (mixed ^ (mixed >> np.uint32(shift))) * np.uint32(factor)
    return (mixed ^ (mixed >> np.uint32(16))).reshape(shape)


CHEAP = define_prng_impl(
    key_shape=(1,),
    seed=lambda seed: jnp.asarray(seed).astype(np.uint32).reshape(1),
    split=lambda key, shape: _bits(key + np.uint32(7), 32, shape)[..., None],
    random_bits=_bits,
    fold_in=lambda key, number: _bits(key * np.uint32(31) + number, 32, (1,)),
    name="cheap",
    tag="cheap",
)


@pytest.mark.parametrize("name", CASES)
def test_what_is_added_changes_no_other_initial_value(name):
    registry, block, given, changes = CASES[name]

    @jax.jit  # all in one program, which draws what several have in common once
    def made(key):
        blocks = {"": block} | {added: {**block, **change} for added, change in changes.items()}
        return {
            added: paths(registry.build(each, **given, rngs=nnx.Rngs(key))) for added, each in blocks.items()
        }

    base, *others = jax.tree.map(np.asarray, made(jax.random.key(0, impl=CHEAP))).items()
    for added, values in others:
        new = [
            path
            for path, value in values.items()
            if path not in base[1] or base[1][path].shape != value.shape
        ]
        assert new, added
        for path in values.keys() - set(new):
            np.testing.assert_array_equal(values[path], base[1][path], err_msg=f"{added}: {path}")
    # And no two are drawn alike, layers of one form among them.
    for added, values in [base, *others]:
        drawn = [value for value in values.values() if len(np.unique(value)) > 2]
        assert len({value.tobytes() for value in drawn}) == len(drawn), added
