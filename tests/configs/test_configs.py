"""Every config file: its arguments, and its smoke form, which trains, is measured and predicts."""

import ast
import math
from pathlib import Path

import jax
import numpy as np
import pytest
from flax import nnx
from ml_collections import ConfigDict

import tasks
import train
from configs import EXPERIMENT, blocks, graph, image, translation
from data.speech.generated import tones
from data.text.generated import dates, facts, grammar
from errors import UserError
from models.images import IMAGE_MODELS
from models.images.cnn import receptive_field
from tasks.task import answers
from tests.command import ROOT
from training import config as configs

FILES = sorted(path for path in (ROOT / "configs").glob("*.py") if "def get_config" in path.read_text())

# Every model that a config names, and every other argument that brings fields of its own.
ARGUMENTS = {
    "image": ("model=vit", "model=cnn"),
    "labeling": (
        "model=window_fc,crf",
        "model=cnn",
        "model=rnn",
        "model=transformer,attention=localness+none,positions=learned",
    ),
    "classification": ("model=multi_width_cnn", "model=rnn,unit=bytes"),
    "speech": ("model=gated_cnn", "model=transformer,pool=self_attentive"),
    "translation": ("model=rnn,attention=local_p", "model=convolution", "model=transformer"),
    "reading": ("model=window_fc,self_matching=additive",),
    "transcription": ("model=rnn", "model=transformer,attention=truncated"),
    "captioning": ("attention=hard",),
    "graph": ("model=transformer", "model=gat", "model=mlp"),
}
# Of these the first is also run; other tests run the others where they are used (tests/test_train.py and
# tests/test_predict.py images and what makes sequences, tests/training/test_versions.py graphs).
RUN = ("labeling", "speech")
SMALL = {
    "duration": "2 steps",
    "evaluate_every": "2 steps",
    "checkpoint_every": "2 steps",
    "log_every": "2 steps",
    "num_devices": 1,
    "batch_size": 40,
    "evaluation_batch_size": 40,
    "batch_tokens": 256,
    "evaluation_batch_tokens": 256,
    "dataset.train_size": 40,
    "dataset.num_strings": 12,
    "model.dim": 8,
    "model.widths": (4,),
    "model.blocks": (1,),
    "model.inputs.widths": (4, 4),
    "model.encoder.num_layers": 1,
    "model.encoder.dim": 8,
    "model.decoder.num_layers": 1,
    "decoding.max_ratio": 0.1,
    "decoding.max_extra": 2,
    "buckets": 1,
    "test": False,
}


def load(file: str | Path, argument: str) -> ConfigDict:
    return configs.from_file(f"{ROOT / 'configs' / file}:{argument}", EXPERIMENT)


def small(file: str, argument: str) -> ConfigDict:
    """The smoke form of a config, with two steps of a small model."""
    config = load(f"{file}.py", f"{argument},smoke")
    there = set(configs.paths(config, EXPERIMENT))
    if "model.encoder.attention.1.kind" in there:  # a layer for each
        there.remove("model.encoder.num_layers")
    changes = {path: value for path, value in SMALL.items() if path in there}
    return configs.override(config, changes, EXPERIMENT, parsed=True)


# New input that needs no file.
RECORDS = {
    "labeling": {"text": "I saw"},
    "classification": {"text": "the dog sees"},
    "translation": {"text": "Montag"},
    "reading": {"context": "the key is in Rome", "question": "where is the key ?"},
}


@pytest.fixture(autouse=True)
def _few_examples(monkeypatch):
    for module in (tones, dates, facts, grammar):
        monkeypatch.setattr(module, "NUM_EXAMPLES", {"train": 20, "validation": 4, "test": 4})


def ones(shapes):
    return jax.tree.map(lambda one: np.ones(one.shape, one.dtype), shapes)


@pytest.mark.parametrize(
    ("file", "argument"), [(file, argument) for file, several in ARGUMENTS.items() for argument in several]
)
def test_loss_metrics_and_answers_can_be_had(file, argument):
    """All that a run asks of its task, traced and not computed, and metrics of ones."""
    task = tasks.build(small(file, argument))
    data = task.data()
    model = nnx.eval_shape(lambda: task.make_model(data.inputs, nnx.Rngs(params=0)))
    structure, arrays = nnx.split(model)

    def asked(function, batch, **keys):
        def call(arrays, batch):
            rngs = {name: nnx.Rngs(dropout=jax.random.key(0)) for name in keys}
            return function(nnx.merge(structure, arrays, copy=True), batch, **rngs)

        return jax.eval_shape(call, arrays, batch)

    batch = next(data.train())
    total, weight, sums = asked(task.loss, batch, rngs=True)
    assert {leaf.shape for leaf in (total, weight, *sums.values())} == {()}
    evaluated = [(batch, ones(asked(task.evaluate, batch))) for batch in data.evaluation["validation"]()]
    assert task.best_metric in task.metrics(evaluated)
    if file in RECORDS:
        records = [{**RECORDS[file], "where": "here"}]
        (answer,) = answers(task, lambda batch: ones(asked(task.predict, batch)), records, data.inputs)
        assert isinstance(answer["line"], str)


@pytest.mark.parametrize("file", RUN)
def test_it_trains_and_is_measured(file, tmp_path):
    config = small(file, ARGUMENTS[file][0])
    result = train.train(config, tmp_path / "run")
    assert result["steps"] == 2
    assert math.isfinite(result[f"validation_{tasks.build(config).best_metric}"])


def test_every_config_is_tried():
    assert {path.stem for path in FILES} == set(ARGUMENTS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_smoke_form_is_short(path):
    number, unit = load(path.name, "smoke").duration.split(" ")
    assert unit == "steps"
    assert int(number) <= 100


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_config_with_no_argument_says_how_it_is_run(path):
    load(path.name, "")
    said = str(ast.get_docstring(ast.parse(path.read_text())))
    assert f"python train.py --config=configs/{path.name}" in said
    for line in said.splitlines():
        if "--config=configs/" in line:
            chosen = line.split("--config=configs/")[1].split()[0]
            load(*chosen.partition(":")[::2])


@pytest.mark.parametrize("dataset", image.DATASETS)
@pytest.mark.parametrize("model", ["vit", "cnn"])
def test_image_arguments(model, dataset):
    config = image.get_config(f"model={model},dataset={dataset},variant=m")
    assert (config.model.kind, config.dataset.name) == (model, dataset)
    sizes = configs._flat(image.VARIANTS["m"][model])
    found = configs._flat(config.model)
    assert {name: found[name] for name in sizes if name != "patch_size"} == {
        name: value for name, value in sizes.items() if name != "patch_size"
    }
    usual = image.get_config(f"dataset={dataset}").model
    assert usual.dim == image.VARIANTS[image.DATASETS[dataset]["variant"]]["vit"].dim
    assert usual.patch_size == image.DATASETS[dataset]["patch_size"]


# What images each size of the image models is meant for.
MEANT_FOR = {
    "xs": ((8, 8, 1), (16, 16, 3)),
    "s": ((28, 28, 1),),
    "m": ((32, 32, 3),),
}


@pytest.mark.parametrize("variant, images", [(v, images) for v in image.VARIANTS for images in MEANT_FOR[v]])
def test_models_of_a_size_match_within_5_percent(variant, images):
    def count(model):
        patch = {"patch_size": 2 if images[0] == 8 else 4} if model == "vit" else {}
        block = {**image.VARIANTS[variant][model].to_dict(), **patch}
        made = nnx.eval_shape(
            lambda: IMAGE_MODELS.build(block, image_shape=images, num_classes=10, rngs=nnx.Rngs(params=0))
        )
        return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(nnx.state(made, nnx.Param)))

    counts = [count(model) for model in IMAGE_MODELS]
    assert max(counts) <= 1.05 * min(counts), counts


def test_every_cnn_sees_as_much_as_a_digit():
    for variant in image.VARIANTS.values():
        assert receptive_field(variant["cnn"].widths, variant["cnn"].blocks) >= 31


def test_both_models_are_trained_alike():
    vit, cnn = (image.get_config(f"model={model}").to_dict() for model in ("vit", "cnn"))
    assert vit.pop("model") != cnn.pop("model")
    assert vit == cnn


@pytest.mark.parametrize("model", ["gat", "transformer", "mlp"])
@pytest.mark.parametrize(
    ("dataset", "pool", "fold"),
    [("cora", "none", None), ("folder:x", "none", None), ("mutag", "sum", 3), ("file:x", "sum", 0)],
)
def test_graph_arguments(model, dataset, pool, fold):
    """Each kind of data has its settings; a set about nodes comes with its split."""
    config = configs.check(graph.get_config(f"model={model},dataset={dataset},fold={fold or 0}"), EXPERIMENT)
    assert (config.model.encoder.kind, config.model.pool.kind) == (model, pool)
    assert (config.dataset.name, config.dataset.fold) == (dataset, fold)
    assert config.encoding.scaling == ("rows" if dataset == "cora" else "none")


@pytest.mark.parametrize("word", blocks.RECURRENT_ATTENTION)
def test_attention_of_a_recurrent_decoder(word):
    decoder = translation.get_config(f"model=rnn,attention={word}").model.decoder
    assert decoder.attention.kind == {"bahdanau": "additive"}.get(word, word)
    assert decoder.order == ("bahdanau" if word in ("none", "bahdanau") else "luong")
    assert decoder.map_keys == word.startswith("local_")


def test_transcription_arguments():
    config = load("transcription.py", "model=transformer,attention=truncated")
    assert (config.model.encoder.attention.kind, config.model.encoder.attention.window) == (
        "banded",
        (25, 25),
    )
    assert config.model.decoder.attention.kind == "dot_product"
    config = load("transcription.py", "model=rnn,attention=local_p,unit=word,dataset=x,speaker_out=y")
    assert config.model.decoder.attention.kind == "local_p"
    assert (config.subwords.unit, config.dataset.name) == ("word", "x")
    assert (config.dataset.speaker_out, config.dataset.num_strings) == ("y", None)


def test_positions_of_a_transformer_are_absolute_relative_or_a_mechanism():
    def parts(argument):
        model = load("labeling.py", f"model=transformer,{argument}").model
        attention = model.encoder.attention
        several = attention if isinstance(attention, tuple) else (attention,)
        return model.positions.kind, model.encoder.positions.kind, *(each.kind for each in several)

    assert parts("") == ("none", "rotary", "dot_product")
    assert parts("positions=learned") == ("learned", "none", "dot_product")
    assert parts("positions=t5,attention=additive") == ("none", "t5", "additive")
    assert parts("positions=shaw") == ("none", "none", "shaw")
    assert parts("positions=none,attention=banded+none") == ("none", "none", "banded", "none")
    assert load("labeling.py", "model=transformer,attention=banded+none+dot").model.encoder.num_layers == 3


@pytest.mark.parametrize(
    ("file", "argument", "said"),
    [
        ("graph", "model=gatt", "unknown model 'gatt'. Did you mean 'gat'?"),
        ("image", "variant=xx", "unknown model variant 'xx'. Did you mean 'xs'?"),
        ("image", "model=vti", "unknown model 'vti'. Did you mean 'vit'?"),
        ("labeling", "model=rnm", "unknown model 'rnm'. Did you mean 'rnn'?"),
        (
            "labeling",
            "positions=rotari,model=transformer",
            "unknown positions 'rotari'. Did you mean 'rotary'?",
        ),
        ("labeling", "positions=rotary", "unknown positions of model 'rnn' 'rotary'"),
        ("labeling", "model=transformer,attention=bandet", "unknown attention in the config 'bandet'"),
        ("classification", "unit=letters", "unknown unit 'letters'"),
        (
            "classification",
            "pool=maximum",
            "unknown pool in sequence_classification.model.head.pool 'maximum'. Did you mean 'max'?",
        ),
        ("captioning", "attention=herd", "unknown attention 'herd'. Did you mean 'hard'?"),
        ("translation", "model=rn", "unknown model 'rn'. Did you mean 'rnn'?"),
        ("translation", "size=tinny", "unknown size 'tinny'. Did you mean 'tiny'?"),
        ("translation", "attention=dot_product", "unknown attention of a transformer 'dot_product'"),
        ("translation", "model=rnn,attention=local_x", "unknown attention of an rnn 'local_x'"),
        (
            "transcription",
            "model=transformer,attention=local_p",
            "unknown attention of a transformer's encoder 'local_p'",
        ),
    ],
)
def test_a_wrong_argument_is_one_line(file, argument, said):
    with pytest.raises(UserError) as caught:
        load(f"{file}.py", argument)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
