"""Labels of vectors: sums, accuracies and spans by hand; and new input, alone and in a batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import tasks
from configs import EXPERIMENT, labeling
from errors import UserError
from models.heads import Output, PositionHead
from tasks.task import Encoded, answers
from training import config as configs


def config(argument="smoke", **fields):
    return configs.override(labeling.get_config(argument), fields, EXPERIMENT, parsed=True)


class Given(nnx.Module):
    """A model whose logits are its input, with a penalty of 1/4 for each example."""

    def __init__(self):
        self.head = PositionHead(dim=2, num_outputs=3, rngs=nnx.Rngs(0))

    def __call__(self, batch, *, train, rngs=None):
        return Output(batch["logits"], jnp.full(len(batch["tags"]), 0.25))


# Chosen are 0 1 2 and 2 1; right are the first two of each, where the last of the first is padding.
LOGITS = np.log([[[8, 1, 1], [2, 6, 2], [1, 1, 8]], [[1, 1, 8], [2, 6, 2], [8, 1, 1]]])
BATCH = {
    "logits": LOGITS.astype(np.float32),
    "tags": np.array([[0, 1, 0], [2, -2, -1]], np.int32),
    "mask": np.array([[True, True, False], [True, True, True]]),
    "known": np.array([[True, False, False], [True, True, True]]),
    "weight": np.ones(2, np.float32),
}


def test_loss_is_the_sum_over_labelled_vectors_and_the_penalty():
    task = tasks.build(config())
    loss, weight, sums = task.loss(Given(), jax.tree.map(jnp.asarray, BATCH), rngs=nnx.Rngs(0))
    np.testing.assert_allclose(loss, -np.log([0.8, 0.6, 0.8]).sum() + 2 * 0.25, rtol=1e-6)
    assert (float(weight), float(sums["accuracy"])) == (3.0, 3.0)


def test_label_smoothing_is_for_training_alone():
    task = tasks.build(config(label_smoothing=0.3))
    loss, _, _ = task.loss(Given(), jax.tree.map(jnp.asarray, BATCH), rngs=nnx.Rngs(0))
    spread = [-np.log(row).mean() for row in ([0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8])]
    expected = -0.7 * np.log([0.8, 0.6, 0.8]).sum() + 0.3 * np.sum(spread) + 2 * 0.25
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    found = task.evaluate(Given(), BATCH)["loss"]
    np.testing.assert_allclose(found, [-np.log([0.8, 0.6]).sum(), -np.log(0.8)], rtol=1e-6)


def measured(labels, batch, chosen):
    task = tasks.build(config())
    task.__dict__["encoded"] = Encoded(None, {"labels": labels})
    output = {"tags": np.asarray(chosen), "loss": np.array([0.5, 1.5])}
    return task.best_metric, task.metrics([(batch, output)])


def test_a_label_that_train_does_not_have_is_wrong_and_one_that_is_missing_does_not_count():
    best, found = measured(["A", "B", "C"], BATCH, [[0, 1, -1], [2, 1, 0]])
    assert best == "accuracy"
    assert found == {
        "accuracy": pytest.approx(3 / 4),
        "loss": pytest.approx(2 / 4),
        "vectors": 4.0,
        "accuracy_known": pytest.approx(2 / 3),
        "accuracy_unknown": 1.0,
    }


def test_spans_are_counted_where_labels_tag_them():
    batch = {name: BATCH[name] for name in ("mask", "weight")}
    batch["tags"] = np.array([[0, 1, 0], [0, 2, -2]])  # B-X I-X; B-X O and an unknown label
    best, found = measured(["B-X", "I-X", "O"], batch, [[0, 1, -1], [0, 1, 0]])
    assert best == "f1"
    # Found are (0, 2) in the first, right, and (0, 2) and (2, 3) in the second, where (0, 1) is due.
    assert (found["precision"], found["recall"]) == (pytest.approx(1 / 3), pytest.approx(1 / 2))
    assert found["accuracy"] == pytest.approx(3 / 5)


def test_smoothing_and_a_crf_do_not_go_together():
    with pytest.raises(UserError, match=r"with config\.model\.head\.crf it must be 0"):
        tasks.build(config("crf,smoke", label_smoothing=0.1))


@pytest.fixture(scope="module")
def tagger():
    """A task on the grammar, and a way to tag texts with a model of it."""
    task = tasks.build(
        config("model=transformer,attention=localness+none,positions=learned,smoke", **{"model.dim": 8})
    )
    inputs = task.data().inputs
    model = task.make_model(inputs, nnx.Rngs(0))
    # A head of zeros would choose the first label always.
    kernel = model.head.output.kernel
    kernel[...] = jax.random.normal(jax.random.key(1), kernel.shape)

    predict = jax.jit(lambda batch: task.predict(model, batch))

    def tag(texts):
        records = [{"text": text, "where": f"line {i}"} for i, text in enumerate(texts, 1)]
        return answers(task, predict, records, inputs)

    return tag


def test_a_sentence_alone_is_tagged_as_in_a_batch(tagger):
    texts = ["I saw a saw", "", "xyzzy", "they can fish the can " * 4, "I saw a saw"]
    together = tagger(texts)
    assert [len(answer["labels"]) for answer in together] == [4, 0, 1, 20, 4]
    assert together[0]["line"].split(" ") == together[0]["labels"] == together[4]["labels"]
    assert (together[1]["line"], together[1]["probability"]) == ("", [])
    for text, answer in zip(texts, together, strict=True):
        (alone,) = tagger([text])
        assert alone["labels"] == answer["labels"]
        np.testing.assert_allclose(alone["probability"], answer["probability"], atol=1e-5)


def test_what_is_longer_than_the_table_of_positions_is_one_line(tagger):
    with pytest.raises(UserError, match=r"line 2 has 513 vectors, but the model takes 512, the max_length"):
        tagger(["I saw", "a " * 513])
    assert len(tagger(["a " * 512])[0]["labels"]) == 512


def test_records_that_are_no_text(tagger):
    task = tasks.build(config())
    for record in ({"path": "a.wav"}, {"tokens": "I saw"}, {"text": 3}, {}):
        with pytest.raises(
            UserError, match=r"line 7: 'text' must be a string, or 'tokens' a list of strings"
        ):
            task.encode([{**record, "where": "line 7"}], task.encoded.inputs)
