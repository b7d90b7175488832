"""Arrays keep the names and shapes by which checkpoints hold them."""

import json
import pathlib

import pytest

from models.decoders import DECODERS
from models.encoder_decoder import ENCODER_DECODER
from models.encoders import ENCODERS
from models.graphs.model import GRAPH_MODEL
from models.images import IMAGE_MODELS
from models.reader import READER
from models.set_model import TAGGER
from tests.models.parameters import paths, shaped

EXPECTED = json.loads(pathlib.Path(__file__).with_name("parameter_paths.json").read_text())
WORDS, LEARNED = {"words": 11}, {"kind": "learned", "max_length": 9}
MODELS = {
    "encoder": (
        ENCODERS,
        {
            "kind": "transformer",
            "num_layers": 3,
            "num_heads": 2,
            "attention": ["localness", "none", "dot_product"],
        },
        {"dim": 8},
    ),
    "decoder": (
        DECODERS,
        {
            "kind": "rnn",
            "cell": "lstm",
            "order": "luong",
            "attention": "general",
            "num_layers": 2,
            "hidden_dim": 5,
        },
        {"dim": 8},
    ),
    "image": (
        IMAGE_MODELS,
        {"kind": "cnn", "widths": (8, 20, 25), "blocks": (0, 1, 2)},
        {"image_shape": (8, 8, 1), "num_classes": 10},
    ),
    "graph": (
        GRAPH_MODEL,
        {"encoder": {"kind": "gat", "residual": True, "norm": True, "num_layers": 3}, "pool": "none"},
        {"node_dim": 3, "edge_dim": 2, "num_outputs": 5, "per_node": True},
    ),
    "tagger": (
        TAGGER,
        {"dim": 8, "head": {"crf": True}, "positions": LEARNED},
        {"columns": {**WORDS, "affixes": (3, 4)}, "num_outputs": 4},
    ),
    "reader": (
        READER,
        {"dim": 8, "self_matching": {"kind": "additive", "hidden_dim": 8}},
        {"columns": {**WORDS, "affixes": (3, 4)}},
    ),
    "translator": (
        ENCODER_DECODER,
        {
            "dim": 8,
            "encoder": "gated_cnn",
            "decoder": "convolution",
            "positions": LEARNED,
            "tokens": {"positions": LEARNED},
        },
        {"columns": WORDS, "vocab_size": 11},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_paths_and_shapes(name):
    registry, block, given = MODELS[name]
    found = {path: list(leaf.shape) for path, leaf in paths(shaped(registry.build, block, **given)).items()}
    assert found == EXPECTED[name]
