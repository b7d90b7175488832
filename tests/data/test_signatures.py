"""Config blocks are read off signatures: each argument needs a type, a default and one line that tells it."""

import inspect
import types
import typing

import pytest

from data.graph import load as graphs
from data.graph.encoder import GraphEncoder
from data.image import batches
from data.image import load as images
from data.speech import load as speech
from data.speech.frames import FrameEncoder
from data.text import load as text
from data.text.subwords import Subwords
from data.text.vocabulary import Vocabulary
from spec import Natural, Share

LOADERS = (
    *(images.labelled, images.captioned),
    *(text.labelled, text.tagged, text.parallel, text.questions),
    *(speech.labelled, speech.transcribed),
    graphs.graphs,
)
FITS = (Vocabulary.fit, Subwords.fit, FrameEncoder.fit, GraphEncoder.fit)
# By the one policy of holding out; every load function has all of these, alike.
POLICY = {
    "data_dir": (str | None, None),
    "validation_fraction": (Share, 0.1),
    "fold": (Natural | None, None),
    "folds": (int | None, None),
    "split_seed": (Natural, 0),
}


def told(function):
    """The lines of the Args of a docstring by argument; what goes on over a line is another line."""
    block = inspect.getdoc(function).split("Args:\n")[1].split("\n\n")[0]
    return [line.strip().partition(": ") for line in block.splitlines()]


def is_plain(annotation):
    """Whether a value can be written in a config: a number, a word, one of some words, or None."""
    unions = (types.UnionType, typing.Union)
    options = typing.get_args(annotation) if typing.get_origin(annotation) in unions else (annotation,)
    options = [option.__origin__ if hasattr(option, "__metadata__") else option for option in options]
    return all(
        option in (int, float, bool, str, types.NoneType) or typing.get_origin(option) is typing.Literal
        for option in options
    )


@pytest.mark.parametrize("function", [*LOADERS, *FITS], ids=lambda function: function.__qualname__)
def test_every_argument_is_told(function):
    first, *options = inspect.signature(function).parameters.values()
    assert [name for name, _, _ in told(function)] == [first.name, *(option.name for option in options)]
    for option, (_, _, line) in zip(options, told(function)[1:], strict=True):
        assert option.kind is option.KEYWORD_ONLY
        assert option.default is not option.empty
        assert is_plain(option.annotation), (option.name, option.annotation)
        assert line.endswith(".")
        assert "see above" not in line
        assert ("None" in line) == (option.default is None), option.name


@pytest.mark.parametrize(
    "function", LOADERS, ids=lambda function: f"{function.__module__}.{function.__name__}"
)
def test_every_load_function_holds_out_by_the_same_names(function):
    parameters = inspect.signature(function).parameters
    assert {name: (parameters[name].annotation, parameters[name].default) for name in POLICY} == POLICY


def test_augmentations_are_words():
    annotation = inspect.signature(batches.batches).parameters["augmentation"].annotation
    assert typing.get_args(annotation) == ("none", "shift", "flip", "shift_flip")
