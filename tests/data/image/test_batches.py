import itertools
import json

import numpy as np
import pytest

import errors
from data import pipeline
from data.image import augmentation
from data.image.batches import batches
from data.image.types import LabelledImages
from data.plans import BatchPlan


def split(size, height=3, width=5, channels=2):
    """Examples that can be told apart: example i has label i and pixels of its own."""
    random = np.random.default_rng(size)
    pixels = random.integers(0, 256, (size, height, width, channels)).astype(np.uint8)
    return LabelledImages.of(pixels, np.arange(size, dtype=np.int32))


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


def test_the_end_of_a_plan():
    examples = split(4)
    assert len(list(batches(examples, batch_size=2, seed=0, num_steps=3))) == 3
    assert len(list(batches(examples, batch_size=2, seed=0, num_steps=0))) == 0
    late = batches(examples, batch_size=2, seed=0, num_steps=3, start_step=2)
    assert len(list(late)) == 1


def test_a_batch_holds_the_examples_of_its_plan():
    examples = split(11)
    plan = BatchPlan(11, 4, seed=5)
    for step, batch in zip(range(9), batches(examples, batch_size=4, seed=5), strict=False):
        assert batch["label"].tolist() == plan[step].indices.tolist()
        assert np.array_equal(batch["image"], examples.images[plan[step].indices])
        assert batch["weight"].tolist() == [1.0] * 4
    assert {key: value.dtype for key, value in batch.items()} == {
        "image": np.uint8,
        "label": np.int32,
        "weight": np.float32,
    }


@pytest.mark.parametrize("name", augmentation.names())
def test_augmentation_is_by_seed_and_step(name):
    examples = split(11, height=8, width=20)
    plan = BatchPlan(11, 4, seed=5)
    stream = batches(examples, batch_size=4, seed=5, augmentation=name, start_step=3)
    expected = augmentation.augment(name, examples.images[plan[3].indices], seed=5, step=3)
    assert np.array_equal(next(stream)["image"], expected)


def test_restored_iterator_goes_on_mid_epoch():
    def start(first=0):
        return batches(split(11), batch_size=4, seed=1, augmentation="shift_flip", start_step=first)

    undisturbed = list(itertools.islice(start(), 12))
    stream = start()
    for _ in range(5):
        next(stream)
    state = json.loads(json.dumps(stream.get_state()))
    next(stream)

    restored = start()
    restored.set_state(state)
    for other in (restored, start(first=5)):
        for step in range(5, 12):
            assert same(next(other), undisturbed[step])


@pytest.mark.parametrize(
    "change, what",
    [
        ({"batch_size": 3}, "batch_size was 4 and is 3"),
        ({"seed": 2}, "seed was 1 and is 2"),
        ({"augmentation": "flip"}, "augmentation was 'none' and is 'flip'"),
        ({"images": split(12)}, "examples was"),
    ],
)
def test_a_state_fits_only_what_it_was_taken_from(change, what, one_line):
    arguments = {"images": split(11), "batch_size": 4, "seed": 1, "augmentation": "none"}
    first = batches(**arguments)
    again = batches(**arguments)
    other = batches(**(arguments | change))
    assert again.fingerprint == first.fingerprint != other.fingerprint
    again.set_state(first.get_state())
    with pytest.raises(errors.UserError) as raised:
        other.set_state(first.get_state())
    one_line(raised, what)


def test_one_changed_pixel_changes_the_fingerprint():
    examples = split(11)
    changed = LabelledImages.of(examples.images.copy(), examples.labels)
    changed.images[7, 2, 4, 1] ^= 1
    prints = {batches(some, batch_size=4, seed=1).fingerprint for some in (examples, changed)}
    assert len(prints) == 2


@pytest.mark.parametrize("size, batch_size", [(7, 3), (6, 3), (1, 1), (1, 4), (2, 5)])
def test_evaluation_counts_every_example_once(size, batch_size):
    examples = split(size)
    found = list(pipeline.evaluation_batches(examples, batch_size))
    assert all(batch["image"].shape == (batch_size, 3, 5, 2) for batch in found)
    whole = {key: np.concatenate([batch[key] for batch in found]) for key in found[0]}
    assert whole["weight"].tolist() == [1.0] * size + [0.0] * (-size % batch_size)
    real = whole["weight"] == 1
    assert whole["label"][real].tolist() == examples.labels.tolist()
    assert np.array_equal(whole["image"][real], examples.images)
    assert (whole["label"][~real] == 0).all()  # a repeat of the first example, so a valid one


@pytest.mark.parametrize("batch_size", [0, -1, 2.0])
def test_bad_batch_size(batch_size, one_line):
    for make in (
        lambda: batches(split(3), batch_size=batch_size, seed=0),
        lambda: pipeline.evaluation_batches(split(3), batch_size),
    ):
        with pytest.raises(errors.UserError) as raised:
            make()
        one_line(raised, "batch_size", batch_size)


def test_bad_augmentation_is_told_before_the_first_batch(one_line):
    with pytest.raises(errors.UserError) as raised:
        batches(split(3), batch_size=1, seed=0, augmentation="flp")
    one_line(raised, "Did you mean 'flip'?")
