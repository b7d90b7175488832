"""Every config: its fields are commented and read, and its smoke form runs."""

import ast
import contextlib
import importlib
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from ml_collections import ConfigDict

import train
from configs import image
from errors import UserError
from tests.command import ROOT

FILES = sorted(path for path in (ROOT / "configs").glob("*.py") if "def get_config" in path.read_text())


def get_config(path: Path, argument: str) -> ConfigDict:
    return importlib.import_module(f"configs.{path.stem}").get_config(argument)


def fields(config: ConfigDict, prefix: str = "") -> dict[str, tuple[int, str]]:
    """Every field by its dotted path: the identity of its block, and its name in it."""
    found = {}
    for name, value in config.items():
        inner = isinstance(value, ConfigDict)
        found |= fields(value, f"{prefix}{name}.") if inner else {prefix + name: (id(config), name)}
    return found


@contextlib.contextmanager
def unread(config: ConfigDict) -> Iterator[set[str]]:
    """The fields of a config that the code inside does not read.

    Copying or comparing a whole block, as is done to save a config, is not reading it.
    """
    names = fields(config)
    left, read, copying = set(names), set(), []
    getitem = ConfigDict.__getitem__

    def note(self, key):
        if not copying:
            read.add((id(self), key))
        return getitem(self, key)

    def unnoted(method):
        def call(self, *args, **kwargs):
            copying.append(method)
            try:
                return method(self, *args, **kwargs)
            finally:
                copying.pop()

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConfigDict, "__getitem__", note)
        for method in (ConfigDict.to_dict, ConfigDict.items, ConfigDict.values):
            patch.setattr(ConfigDict, method.__name__, unnoted(method))
        yield left
        left -= {name for name, place in names.items() if place in read}


# Every model that a config names, and every other argument that brings fields of its own.
ARGUMENTS = {
    "image": ("model=vit", "model=cnn"),
    "labeling": (
        "model=window_fc",
        "model=cnn",
        "model=rnn,crf",
        "model=transformer,attention=localness+none,positions=learned",
    ),
    "classification": ("model=multi_width_cnn", "model=transformer,attention=banded"),
    "speech": ("model=transformer",),
    "translation": ("model=rnn,attention=local_p", "model=convolution", "model=transformer"),
    "reading": ("model=window_fc,self_matching=additive",),
    "transcription": ("model=rnn",),
    "captioning": ("attention=hard",),
    "graph": ("model=gat", "model=transformer", "model=mlp"),
}
FEW_STEPS = {
    "duration": "2 steps",
    "evaluate_every": "2 steps",
    "checkpoint_every": "2 steps",
    "log_every": "2 steps",
    "batch_size": 40,
    "evaluation_batch_size": 40,
    "dataset.train_size": 40,
    "model.dim": 8,
    "model.widths": (4,),
    "model.blocks": (1,),
    "model.inputs.widths": (4, 4),
    "model.encoder.num_layers": 1,
    "model.decoder.num_layers": 1,
    "model.decoder.soft_steps": 1,
    "decoding.max_ratio": 0.1,
    "decoding.max_extra": 2,
    "buckets": 1,
    "test": False,
}


def few_steps(file: str, argument: str) -> ConfigDict:
    """The smoke form of a config, with two steps of a small model."""
    config = get_config(Path(f"{file}.py"), f"{argument},smoke")
    there = fields(config)
    config.update_from_flattened_dict({name: value for name, value in FEW_STEPS.items() if name in there})
    return config


@pytest.fixture(autouse=True, scope="module")
def _compile_fast():
    """These runs are too short for optimised code to pay."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.mark.parametrize("file, argument", [(file, a) for file in ARGUMENTS for a in ARGUMENTS[file]])
def test_it_runs_and_every_field_is_read(file, argument, tmp_path):
    config = few_steps(file, argument)
    # A field that nobody reads is found out; in the model block it does not even get that far.
    for block in (config, config.dataset, config.optimizer):
        block.planted = 1
    with unread(config) as left:
        result = train.train(config, tmp_path / "run")
    assert left == {"planted", "dataset.planted", "optimizer.planted"}
    assert result["steps"] == 2


def test_a_field_that_the_model_lacks_is_refused(tmp_path):
    config = few_steps("image", "model=vit")
    config.model.planted = 1
    with pytest.raises(UserError, match="planted"):
        train.train(config, tmp_path / "run")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_smoke_form_is_short(path):
    number, unit = get_config(path, "smoke").duration.split(" ")
    assert unit == "steps"
    assert int(number) <= 100


def test_every_config_is_tried():
    assert {path.stem for path in FILES} == set(ARGUMENTS)


def fields_without_comment(source: str) -> list[str]:
    """Assignments to a field of a config or block without a comment on one of their lines.

    Whole blocks need none.
    """
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    commented = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Assign):
            continue
        name, value = ast.unparse(node.targets[0]), ast.unparse(node.value)
        is_block = value.startswith(("ConfigDict(", "blocks."))
        lines = set(range(node.lineno, node.end_lineno + 1))
        if name.startswith(("config.", "block.")) and not is_block and not lines & commented:
            found.append(name)
    return found


@pytest.mark.parametrize("path", [*FILES, ROOT / "configs" / "blocks.py"], ids=lambda path: path.stem)
def test_every_field_is_commented(path):
    assert fields_without_comment(path.read_text()) == []


def test_a_field_without_comment_is_seen():
    source = (
        "config = ConfigDict()\n"
        "config.a = 1  # one\n"
        "config.block = ConfigDict()\n"
        "config.block.b = 'no # comment'\n"
        "config.made = blocks.made(1)\n"
        "if True:\n"
        "    config.c = (\n        1,  # one\n    )\n"
        "    config.d = 2\n"
    )
    assert fields_without_comment(source) == ["config.block.b", "config.d"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_config_with_no_argument_says_how_it_is_run(path):
    get_config(path, "")
    assert f"python train.py --config=configs/{path.name}" in ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("dataset", image.DATASETS)
@pytest.mark.parametrize("model", ["vit", "cnn"])
def test_image_arguments(model, dataset):
    config = image.get_config(f"model={model},dataset={dataset},variant=m")
    assert (config.model.kind, config.model.variant, config.dataset.name) == (model, "m", dataset)
    assert image.get_config(f"dataset={dataset}").model.variant == image.DATASETS[dataset]["variant"]


def test_both_models_are_trained_alike():
    vit, cnn = (image.get_config(f"model={model}").to_dict() for model in ("vit", "cnn"))
    assert vit.pop("model") != cnn.pop("model")
    assert vit == cnn
