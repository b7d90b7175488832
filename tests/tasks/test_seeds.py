"""What a seed decides, for every task: `seed` the order, `dataset.split_seed` which examples there are."""

import math

import numpy as np
import pytest

import tasks
from configs import EXPERIMENT
from data.speech.generated import tones
from data.text.generated import dates, facts, grammar
from tests.command import ROOT
from training import config as configs

FEW = {"train": 30, "validation": 6, "test": 6}
ONE_SHAPE = {"buckets": 1, "batch_tokens": 512, "batch_size": 9, "evaluation_batch_size": 6}
SIZES = {"dataset.train_size": 40, "dataset.num_strings": 12}
FILES = (
    "image",
    "labeling",
    "classification",
    "speech",
    "translation",
    "reading",
    "transcription",
    "captioning",
)


def splits(file, **changes):
    """The examples of each split, in the order in which they come; of train one epoch."""
    config = configs.from_file(f"{ROOT / 'configs' / file}.py:smoke", EXPERIMENT)
    there = set(configs.paths(config, EXPERIMENT))
    changes |= {path: value for path, value in (ONE_SHAPE | SIZES).items() if path in there}
    with pytest.MonkeyPatch.context() as patch:
        for module in (tones, dates, facts, grammar):
            patch.setattr(module, "NUM_EXAMPLES", FEW)
        data = tasks.build(configs.override(config, changes, EXPERIMENT, parsed=True)).data()
        train = data.train()
        batches = {"train": [next(train) for _ in range(math.ceil(data.batches_per_epoch))]}
        batches |= {split: list(made()) for split, made in data.evaluation.items()}
    found = {split: [row for batch in several for row in rows(batch)] for split, several in batches.items()}
    return {**found, "train": found["train"][: data.num_train]}


def rows(batch):
    """The examples of a batch, each without its padding."""
    real = np.flatnonzero(batch["weight"] > 0)
    columns = sorted(name for name in batch if batch[name].ndim and name not in ("weight", "example"))
    return [tuple(batch[name][row].tobytes().rstrip(b"\0") for name in columns) for row in real]


@pytest.mark.parametrize("file", FILES)
def test_seed_is_the_order_and_split_seed_what_there_is(file):
    first = splits(file)
    other_order, other_examples = splits(file, seed=1), splits(file, **{"dataset.split_seed": 1})
    assert splits(file) == first
    assert len(first["train"]) > 10
    assert sorted(other_order["train"]) == sorted(first["train"])
    assert other_order["train"] != first["train"]
    assert [other_order[split] for split in ("validation", "test")] == [first["validation"], first["test"]]
    assert sorted(other_examples["train"]) != sorted(first["train"])
    assert len(other_examples["test"]) == len(first["test"])  # the same, as tests/data tell
    if file == "image":  # whose validation is held out; that of generated sets is always the same
        assert other_examples["validation"] != first["validation"]


def test_a_graph_with_a_split_of_its_own_has_neither():
    assert splits("graph") == splits("graph", seed=1) == splits("graph", **{"dataset.split_seed": 1})
