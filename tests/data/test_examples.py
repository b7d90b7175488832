import numpy as np
import pytest

from data.examples import Examples
from data.ragged import Ragged


def graphs(label=(7, 8), words=((1, 2), (3,)), senders=((0, 1, 1), ())):
    return Examples(
        {"label": np.array(label, np.int32)},
        {"words": Ragged.of(words, np.int32)},
        {"senders": Ragged.of(senders, np.int32)},
    )


def test_a_batch_is_padded_to_its_size_and_says_what_exists():
    batch = graphs().gather(np.array([1, 0, -1]), (3, 4))
    assert {name: column.tolist() for name, column in batch.items()} == {
        "label": [8, 7, 7],
        "words": [[3, 0, 0], [1, 2, 0], [0, 0, 0]],
        "mask": [[True, False, False], [True, True, False], [False] * 3],
        "senders": [[0] * 4, [0, 1, 1, 0], [0] * 4],
        "edge_mask": [[False] * 4, [True, True, True, False], [False] * 4],
        "weight": [1.0, 1.0, 0.0],
    }


def test_sizes_and_parts():
    assert graphs().sizes.tolist() == [[2, 3], [1, 0]]
    assert graphs().take(np.array([1])).gather(np.array([0]), (1, 0))["label"].tolist() == [8]
    alone = Examples({"label": np.arange(3)})
    assert (len(alone), alone.sizes.tolist()) == (3, [[0, 0]] * 3)
    assert alone.gather(np.array([2]), (0, 0)).keys() == {"label", "weight"}


def test_the_fingerprint_is_of_the_content():
    others = [graphs(label=(7, 9)), graphs(words=((1,), (2, 3))), graphs(senders=((0, 1), (1,)))]
    assert graphs().fingerprint == graphs().fingerprint
    assert len({graphs().fingerprint, *(other.fingerprint for other in others)}) == 4


def test_columns_that_do_not_belong_together():
    with pytest.raises(ValueError, match="every column"):
        graphs(label=(7, 8, 9))
    with pytest.raises(ValueError, match="words, tags must have the same lengths"):
        Examples({}, {"words": Ragged.of([[1, 2]], np.int32), "tags": Ragged.of([[1]], np.int32)})


def test_targets_are_the_second_side_of_an_example():
    pairs = Examples(
        vectors={"words": Ragged.of([[5], [6, 7]], np.int32)},
        targets={"tokens": Ragged.of([[8, 9, 3], [3]], np.int32)},
    )
    assert pairs.sizes.tolist() == [[1, 3], [2, 1]]
    batch = pairs.take(np.array([1, 0])).gather(np.array([1, -1]), (2, 4))
    assert batch["tokens"].tolist() == [[8, 9, 3, 0], [0] * 4]
    assert batch["target_mask"].tolist() == [[True, True, True, False], [False] * 4]
    with pytest.raises(ValueError, match="edges senders and targets tokens: not both"):
        Examples(edges={"senders": pairs.targets["tokens"]}, targets=pairs.targets)
