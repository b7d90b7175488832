"""Examples of many lengths as batches of few shapes."""

import numpy as np

from data.examples import Examples
from data.ragged import Ragged
from data.splits import Splits
from tasks import bucketed
from tasks.task import Encoded


def examples(*lengths):
    words = [np.full(length, i + 2) for i, length in enumerate(lengths)]
    return Examples({"label": np.arange(len(lengths))}, {"words": Ragged.of(words, np.int32)})


def data(**changes):
    given = {
        "batch_tokens": 64,
        "evaluation_batch_tokens": 128,
        "buckets": 2,
        "seed": 0,
    }
    splits = Splits(examples(*range(1, 31)), examples(3, 40), examples(2, 9, 17))
    return bucketed.task_data(Encoded(splits, {"a": 1}), **given | changes)


def test_an_epoch_holds_every_example_and_evaluation_too():
    found = data()
    assert (found.num_train, found.inputs) == (30, {"a": 1})
    train = found.train()
    batches = [next(train) for _ in range(int(found.batches_per_epoch))]
    seen = np.concatenate([batch["label"][batch["weight"] > 0] for batch in batches])
    assert sorted(seen) == list(range(30))
    shapes = {batch["words"].shape for batch in batches}
    assert len(shapes) <= 2
    assert {size for size, _ in shapes} <= set(found.batch_sizes)
    for split, number in (("validation", 2), ("test", 3)):
        assert sum(batch["weight"].sum() for batch in found.evaluation[split]()) == number
        assert {batch["words"].shape[1] for batch in found.evaluation[split]()} <= {n for _, n in shapes} | {
            40
        }


def test_the_example_is_one_of_middle_length_in_a_training_shape():
    found = data()
    assert found.example["words"].shape[0] == 1
    assert int(found.example["mask"].sum()) == 16


def test_new_input_in_shapes_that_are_powers_of_two():
    given = examples(5, 0, 100, 7, 33)
    batches = list(bucketed.new_input(given, 256))
    rows = np.concatenate([rows for rows, _ in batches])
    assert sorted(rows[rows >= 0]) == [0, 1, 2, 3, 4]
    for rows, batch in batches:
        assert all(size & (size - 1) == 0 for size in batch["words"].shape)
        real = rows >= 0
        assert batch["label"][real].tolist() == rows[real].tolist()
        assert batch["mask"].sum(1)[real].tolist() == given.sizes[rows[real], 0].tolist()
    assert list(bucketed.new_input(examples(), 256)) == []


def test_one_line_is_a_batch_of_one():
    ((rows, batch),) = bucketed.new_input(examples(5), 4096)
    assert (rows.tolist(), batch["words"].shape) == ([0], (1, 8))
