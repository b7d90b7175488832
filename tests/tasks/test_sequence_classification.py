"""One label for a sequence: sums by hand, and new input of both kinds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.io.wavfile
from flax import nnx

import tasks
from configs import EXPERIMENT, classification, speech
from errors import UserError
from models.heads import Output
from tasks import task as task_module
from training import config as configs


def config(argument="smoke", module=classification, **fields):
    return configs.override(module.get_config(argument), fields, EXPERIMENT, parsed=True)


class Given(nnx.Module):
    """A model whose logits are its input, with a penalty of 1/4 for each example."""

    def __call__(self, batch, *, train, rngs=None):
        return Output(batch["logits"], jnp.full(len(batch["label"]), 0.25))


LOGITS = np.log([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]).astype(np.float32)
BATCH = {
    "logits": LOGITS,
    "label": np.array([0, 2, 2], np.int32),  # right, wrong, and padding that would be right
    "weight": np.array([1, 1, 0], np.float32),
}


def test_loss_is_the_weighted_sum_of_cross_entropies_and_penalties():
    task = tasks.build(config(label_smoothing=0.0))
    loss, weight, sums = task.loss(Given(), jax.tree.map(jnp.asarray, BATCH), rngs=nnx.Rngs(0))
    np.testing.assert_allclose(loss, -np.log([0.8, 0.2]).sum() + 2 * 0.25, rtol=1e-6)
    assert (float(weight), float(sums["accuracy"])) == (2.0, 1.0)


def test_metrics_are_of_every_example_once():
    task = tasks.build(config())
    found = task.metrics([(BATCH, jax.device_get(task.evaluate(Given(), BATCH)))])
    assert found == {
        "accuracy": 0.5,
        "macro_f1": pytest.approx(1 / 3),  # 1 of label 0; 0 of label 1, chosen wrongly, and of label 2
        "loss": pytest.approx(-np.log([0.8, 0.2]).mean()),
        "examples": 2.0,
    }


def test_a_label_that_train_does_not_have_is_wrong():
    task = tasks.build(config())
    batch = BATCH | {"label": np.array([0, -2, 2], np.int32)}
    found = task.metrics([(batch, jax.device_get(task.evaluate(Given(), batch)))])
    assert (found["accuracy"], found["loss"]) == (0.5, pytest.approx(-np.log(0.8) / 2))


def answers(task, inputs, model, records):
    return task_module.answers(task, jax.jit(lambda batch: task.predict(model, batch)), records, inputs)


def trained(argument, module):
    """A model with a head that is not zero, so that answers differ."""
    task = tasks.build(config(argument, module, **{"model.dim": 8}))
    inputs = task.data().inputs
    model = task.make_model(inputs, nnx.Rngs(0))
    kernel = model.head.output.kernel
    kernel[...] = jax.random.normal(jax.random.key(1), kernel.shape)
    return task, inputs, model


def test_a_text_alone_is_answered_as_in_a_batch():
    task, inputs, model = trained("model=rnn,pool=last,smoke", classification)
    texts = ["the dog sees", "", "   ", "cat", "the dog that sees the cats " * 3]
    together = answers(task, inputs, model, [{"text": text} for text in texts])
    assert [answer["line"] for answer in together[1:3]] == ["", ""]
    for text, answer in zip(texts, together, strict=True):
        (alone,) = answers(task, inputs, model, [{"text": text}])
        assert alone["label"] == answer["label"]
        if alone["label"] is not None:
            assert alone["probability"] == pytest.approx(answer["probability"], abs=1e-5)
            assert answer["line"] == answer["label"] in inputs["labels"]


def test_recordings_of_any_kind(tmp_path):
    task, inputs, model = trained("model=cnn,smoke", speech)
    rate = inputs["frames"]["rate"]
    noise = np.random.default_rng(0).normal(0, 0.1, rate // 2)
    sounds = {
        "mono": (rate, noise.astype(np.float32)),
        "stereo": (rate, np.stack([noise, noise], axis=1).astype(np.float32)),
        "short": (rate, (noise[: rate // 50] * 2**15).astype(np.int16)),  # 20 ms
        "fast": (44_100, (np.repeat(noise, 6)[:22_050] * 2**15).astype(np.int16)),
    }
    records = []
    for name, (of, samples) in sounds.items():
        path = tmp_path / f"{name}.wav"
        scipy.io.wavfile.write(path, of, samples)
        records.append({"path": str(path), "where": str(path)})
    found = answers(task, inputs, model, records)
    assert all(answer["label"] in inputs["labels"] for answer in found)
    assert found[0]["probability"] == pytest.approx(found[1]["probability"], abs=1e-5)
    (alone,) = answers(task, inputs, model, records[2:3])
    assert alone["probability"] == pytest.approx(found[2]["probability"], abs=1e-5)
    (tmp_path / "text.wav").write_text("no sound")
    with pytest.raises(UserError, match=r"text\.wav"):
        answers(task, inputs, model, [{"path": str(tmp_path / "text.wav"), "where": "text.wav"}])
    with pytest.raises(UserError, match="line 3: a wav file is needed"):
        answers(task, inputs, model, [{"text": "hello", "where": "line 3"}])


def test_recordings_are_not_encoded_as_words():
    with pytest.raises(
        UserError, match=r"^config\.encoding\.kind is 'words'; with config\.dataset\.kind 'speech' it"
    ):
        tasks.build(config(**{"dataset.kind": "speech", "dataset.name": "tones"})).data()


def test_words_have_no_frames_to_read():
    task = tasks.build(config(**{"model.inputs.kind": "frames"}))
    with pytest.raises(UserError, match="frames"):
        nnx.eval_shape(lambda: task.make_model(task.data().inputs, nnx.Rngs(0)))
