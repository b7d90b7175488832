"""Every argument of every constructor that a config can name counts for something, and says what it is for.

Each field of each row of a registry, found by `spec.fields`, is set to another value that its annotation
allows; then the program that makes the module and runs it, dropout on, must be another one. (Mechanisms have
a test of their own, `tests/models/mechanisms`.)
"""

import typing

import jax
import numpy as np
import pytest
from flax import nnx

import spec
from errors import UserError
from models.decoders import DECODERS
from models.decoders.decoder import Memory
from models.encoder_decoder import ENCODER_DECODER, TOKENS
from models.encoders import ENCODERS
from models.graphs import GRAPH_ENCODERS
from models.graphs.edges import Edges
from models.graphs.model import GRAPH_MODEL
from models.images import IMAGE_MODELS
from models.inputs import INPUTS
from models.layers.pooling import POOLS
from models.mechanisms import MECHANISMS, NORMALIZERS
from models.positions import POSITIONS, RELATIVE
from models.reader import READER, SPAN_HEAD
from models.search import Search, decode
from models.set_model import CLASSIFIER, POOLED_HEAD, POSITION_HEAD, TAGGER
from tests.models.parameters import normal, real

B, T, S, D, K = 2, 5, 4, 4, 3
X, MASK = np.asarray(normal(B, T, D)), real(T, 3, of=T)
Y, Z = np.asarray(normal(B, S, D, seed=2)), real(S, 2, of=S)
MEMORY = Memory(X, MASK, X[:, ::-1])
WORDS = np.tile(np.arange(1, T + 1, dtype=np.int32), (B, 1))
AFFIXES = np.stack([WORDS, WORDS], axis=-1)
SCORES = np.asarray(normal(1, 1, 4, 12))
EDGES = Edges(WORDS % T, (2 * WORDS) % T, MASK)
BATCH = {
    "words": WORDS,
    "affixes": AFFIXES,
    "bytes": WORDS,
    "frames": np.asarray(normal(B, T, 3)),
    "image": np.asarray(normal(B, 8, 8, 1)),
    "mask": MASK,
    "tokens": WORDS[:, :S],
    "question": WORDS[:, :S],
    "target_mask": Z,
}
COLUMNS = {"words": 7, "bytes": 7, "frames": 3, "image": (8, 8, 1)}
ALL = {"words": 7, "affixes": (7, 7)}
HEADS = {"num_heads": 2, "num_kv_heads": 2, "head_dim": 4}
SEARCH = spec.call(Search)


def _searched(search, rngs):
    model = ENCODER_DECODER.build(SMALL | {"encoder": "none"}, columns={"words": 7}, vocab_size=7, rngs=rngs)
    keys = jax.random.split(jax.random.key(0), B) if search.temperature else None
    return decode(model, BATCH, search, keys=keys)


SMALL: dict[str, typing.Any] = {"dim": D, "encoder": {"kind": "rnn", "cell": "plain"}}
DROP = {"train": True}

# Of each registry what is given to all its rows, how one is called, and fields that suit the sizes here.
TRIED: dict[str, tuple] = {
    "encoders": (
        ENCODERS,
        {"dim": D},
        lambda m, rngs: m(X, MASK, **DROP, rngs=rngs),
        {"transformer": {"num_layers": 1, "num_heads": 2}, "gated_cnn": {"num_layers": 1}},
    ),
    "decoders": (
        DECODERS,
        {"dim": D},
        lambda m, rngs: m(Y, MEMORY, **DROP, rngs=rngs),
        {"transformer": {"num_layers": 1, "num_heads": 2}, "convolution": {"num_layers": 1}},
    ),
    "images": (
        IMAGE_MODELS,
        {"image_shape": (8, 8, 1), "num_classes": K},
        lambda m, rngs: m(BATCH["image"], **DROP, rngs=rngs),
        {"vit": {"dim": 8, "num_layers": 1, "num_heads": 2}, "cnn": {"widths": (2, 3), "blocks": (0, 1)}},
    ),
    "graphs": (
        GRAPH_ENCODERS,
        {"in_dim": D, "out_dim": K, "edge_dim": 0},
        lambda m, rngs: m(X, MASK, edges=EDGES, **DROP, rngs=rngs),
        {
            "gat": {"num_layers": 3, "num_heads": 2, "head_dim": 2},
            "transformer": {"dim": 4, "num_layers": 1, "num_heads": 2},
        },
    ),
    "inputs": (
        INPUTS,
        {"dim": D, **COLUMNS, "affixes": (7, 7)},
        lambda m, rngs: m(BATCH, **DROP, rngs=rngs),
        {},
    ),
    "pools": (POOLS, {"dim": D}, lambda m, rngs: m(X, MASK), {}),
    "positions": (POSITIONS, {"dim": D}, lambda m, rngs: m(X, MASK), {}),
    "relative": (
        RELATIVE,
        {"num_heads": 2, "head_dim": 4},
        lambda m, rngs: (m.turn(X[:, :, None]), m.bias(T)),
        {},
    ),
    "normalisers": (NORMALIZERS, {}, lambda m, rngs: m(SCORES, None), {}),
    "tokens": (
        TOKENS,
        {"dim": D, "vocab_size": 7, "embedding": None},
        lambda m, rngs: m.logits(m.vectors(BATCH["tokens"], rngs), rngs),
        {},
    ),
    "heads of vectors": (
        POSITION_HEAD,
        {"dim": D, "num_outputs": K},
        lambda m, rngs: (m(X, MASK, rngs=rngs), m.decode(X[..., :K], MASK)),
        {},
    ),
    "heads of sets": (POOLED_HEAD, {"dim": D, "num_outputs": K}, lambda m, rngs: m(X, MASK, rngs=rngs), {}),
    "heads of spans": (SPAN_HEAD, {"dim": D}, lambda m, rngs: m(X, MASK, Y, Z), {}),
    "taggers": (
        TAGGER,
        {"columns": ALL, "num_outputs": K},
        lambda m, rngs: m(BATCH, **DROP, rngs=rngs),
        {None: SMALL},
    ),
    "classifiers": (
        CLASSIFIER,
        {"columns": ALL, "num_outputs": K},
        lambda m, rngs: m(BATCH, **DROP, rngs=rngs),
        {None: SMALL},
    ),
    "encoder-decoders": (
        ENCODER_DECODER,
        {"columns": {"words": 7}, "vocab_size": 7},
        lambda m, rngs: m(BATCH, **DROP, rngs=rngs),
        {None: SMALL},
    ),
    "readers": (
        READER,
        {"columns": {"words": 7}},
        lambda m, rngs: m(BATCH, **DROP, rngs=rngs),
        {None: SMALL},
    ),
    "models of graphs": (
        GRAPH_MODEL,
        {"node_dim": D, "edge_dim": 0, "num_outputs": K, "per_node": False},
        lambda m, rngs: m(X, MASK, edges=EDGES, **DROP, rngs=rngs),
        {None: {"encoder": "mlp"}},
    ),
    "searches": (SEARCH, {}, _searched, {}),
}
# Fields that count only beside others, which those that stand here have then.
BESIDE: dict[tuple[str, str, str], dict[str, typing.Any]] = {
    ("encoders", "rnn", "dropout_rate"): {"num_layers": 2},
    ("encoders", "cnn", "dilation"): {"num_layers": 2},
    ("decoders", "rnn", "input_feeding"): {"order": "luong"},
    ("decoders", "rnn", "soft_steps"): {"choice": "hard"},
    ("inputs", "words", "affix_dim"): {"combine": "concatenate"},
    ("searches", "Search", "num_best"): {"beam": 3},
}
# Other values where the annotation does not say which would do.
OTHER: dict[tuple[str, str, str], typing.Any] = {
    ("images", "cnn", "widths"): (2, 4),
    ("images", "cnn", "blocks"): (1, 1),
    ("images", "vit", "patch_size"): 2,
    ("inputs", "image", "widths"): (16, 32, 65),
    ("taggers", "Tagger", "inputs"): {"kind": "words", "combine": "concatenate"},
    ("classifiers", "Classifier", "inputs"): {"kind": "words", "combine": "concatenate"},
    ("encoder-decoders", "EncoderDecoder", "inputs"): {"kind": "words", "word_dropout_rate": 0.5},
    ("readers", "Reader", "inputs"): {"kind": "words", "word_dropout_rate": 0.5},
}


def others(field: spec.Field, value) -> list:
    """Other values that the annotation of a field allows, the likeliest to work first."""
    if field.part is not None:
        if field.part.key:
            return [{"kind": word} for word in field.part if word != value["kind"]]
        return [
            {**value, name: other}
            for name, inner in field.part.fields(next(iter(field.part))).items()
            for other in others(inner, value[name])
        ]
    if typing.get_origin(field.type) is typing.Literal:
        return [word for word in typing.get_args(field.type) if word != value]
    if field.type is bool:
        return [not value]
    if field.type is float:
        near = [0.5, 0.25, 1.5, 2.5] if value is None else [value / 2 or 0.5, value + 0.5]
        return [other for other in near if field.range is None or other in field.range]
    if field.type is int:
        near = [1, 2] if value is None else [value + 1, value // 2, 2 * value]
        return [other for other in near if other in (field.range or spec.Range(1))]
    inner = typing.get_args(field.type)  # a tuple
    return (
        [(*value[:-1], value[-1] + 1), value[:-1]] if inner[-1] is Ellipsis else [(value[0] + 1, *value[1:])]
    )


def program(registry, block, given, call) -> str:
    """How a row is made and what it computes, every constant included."""

    def everything(key):
        module = registry.build(block, **given, rngs=nnx.Rngs(key))
        state = nnx.state(module) if isinstance(module, nnx.Module) else ()
        if registry is SEARCH:
            return call(module, nnx.Rngs(key))
        return jax.tree.leaves((state, module if module is None else call(module, nnx.Rngs(dropout=key))))

    made = jax.make_jaxpr(everything)(jax.random.key(0))
    return f"{made} {[np.asarray(constant).tobytes() for constant in made.consts]}"


ROWS = [(name, word) for name, (registry, *_) in TRIED.items() for word in registry]


@pytest.mark.parametrize("name, word", ROWS)
def test_no_argument_is_ignored(name, word):
    registry, given, call, fields = TRIED[name]
    base = {
        **({registry.key: word} if registry.key else {}),
        **fields.get(word if registry.key else None, {}),
    }
    before: dict[str, str] = {}  # by what stands beside a field

    def counts(argument: str, field: spec.Field) -> bool:
        beside = BESIDE.get((name, word, argument), {})
        block = {**base, **beside}
        if str(beside) not in before:
            before[str(beside)] = program(registry, block, given, call)
        chosen = OTHER.get((name, word, argument))
        value = spec.complete(registry, block, around=(given,), final=True)[argument]
        for other in [chosen] if chosen is not None else others(field, value):
            try:
                after = program(registry, {**block, argument: other}, given, call)
            except (UserError, ValueError):
                continue  # it does not go with the rest
            if after != before[str(beside)]:
                return True
        return False

    ignored = [each for each, field in registry.fields(word).items() if not counts(each, field)]
    assert not ignored


@pytest.mark.parametrize("name, word", ROWS)
def test_every_argument_says_what_it_is_for(name, word):
    registry = TRIED[name][0]
    for field in registry.fields(word).values():
        assert field.comment, field.name
        assert not field.comment.lower().startswith("see "), field.name
        assert field.allowed, field.name


def test_every_registry_is_tried():
    """All those of nested fields, down from the models."""
    tried = {id(row) for registry, *_ in TRIED.values() for row in registry.values()}
    tried |= {id(row) for row in MECHANISMS.values()} | {id(spec.nothing)}

    def walk(registry):
        for word in registry:
            assert id(registry[word]) in tried, (registry.what, word)
            for field in registry.fields(word).values():
                if field.part is not None:
                    walk(field.part)

    for registry, *_ in TRIED.values():
        walk(registry)
