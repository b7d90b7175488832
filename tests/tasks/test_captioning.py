"""Captioning: losses by hand, metrics by hand, and image files through an untrained model."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from PIL import Image

import tasks
from configs import EXPERIMENT, captioning
from data.text.subwords import Subwords
from errors import UserError
from models.decoders.decoder import Draws
from models.encoder_decoder import Prediction
from tasks.captioning import variational, within
from tasks.task import Encoded, answers
from training import config as configs


def task(argument="smoke", **fields):
    config = captioning.get_config(argument)
    return tasks.build(configs.override(config, fields, EXPERIMENT, parsed=True))


# Three captions of two, two and one words.
REAL = jnp.array([[True, True], [True, True], [True, False]])
LIKELIHOOD = np.array([[-1.0, -2.0], [-3.0, -1.0], [-2.0, 0.0]])
ENTROPY = jnp.array([[0.5, 0.25], [1.0, 0.0], [2.0, 9.0]])


def total(log_likelihood, log_probability, entropy, real=REAL, reward_weight=2.0):
    draws = Draws(log_probability, entropy)
    return variational(log_likelihood, draws, real, reward_weight, 0.1).sum()


def test_a_look_is_rewarded_by_its_word_and_those_after_against_the_other_captions():
    log_probability = np.log(np.array([[0.5, 0.25], [0.1, 0.2], [0.3, 0.4]]))
    grad = jax.jit(jax.value_and_grad(total, argnums=(0, 1, 2)))
    value, gradients = grad(LIKELIHOOD, log_probability, ENTROPY)
    np.testing.assert_allclose(value, 9 - 0.1 * 3.75, rtol=1e-6)
    np.testing.assert_allclose(gradients[0], np.where(REAL, -1, 0))
    # First looks have rewards -3 -4 -2, the others' means are -3 -2.5 -3.5; second ones -2 -1.
    np.testing.assert_allclose(gradients[1], [[0, 2], [3, -2], [-3, 0]], atol=1e-6)
    np.testing.assert_allclose(gradients[2], np.where(REAL, -0.1, 0), rtol=1e-6)


def test_a_caption_alone_has_nothing_to_be_compared_with():
    gradient = jax.jit(jax.grad(total, argnums=1))(LIKELIHOOD[:1], ENTROPY[:1], ENTROPY[:1], REAL[:1])
    np.testing.assert_array_equal(gradient, 0)


WEIGHTS = np.array([[[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0], [0.2, 0.3, 0.5]]], np.float32)
BOXES = np.array([[[0, 2, 3, 6], [0, 0, 0, 0]], [[1, 4, 3, 6], [2, 0, 4, 3]]], np.int16)
BATCH = {
    "tokens": jnp.array([[1, 0], [2, 2]], jnp.int32),
    "target_mask": jnp.array([[True, False], [True, True]]),
    "image": jnp.zeros((2, 4, 6, 1)),
    "boxes": jnp.asarray(BOXES),
    "weight": jnp.ones(2),
    "example": jnp.array([0, 1], jnp.int32),
}


class Given:
    """A model of four words, equally likely, that looks at one row of three places by given weights."""

    inputs = SimpleNamespace(grid=(1, 3))

    def __init__(self, weights=WEIGHTS):
        self.weights = weights

    def __call__(self, batch, *, train=False, rngs=None, return_weights=False):
        weights = (self.weights[:, None],) if return_weights else ()
        return Prediction(jnp.zeros((2, 2, 4)), weights, None)


def test_places_are_to_get_as_much_attention_as_one_another():
    given = task("attention=soft,smoke", doubly_stochastic=0.5)
    loss, weight, sums = jax.jit(lambda batch: given.loss(Given(), batch, rngs=None))(BATCH)
    # Received are 0.5 0.25 0.25, the second row being padding; and 0.2 1.3 0.5.
    penalty = (0.5**2 + 0.75**2 + 0.75**2) + (0.8**2 + 0.3**2 + 0.5**2)
    np.testing.assert_allclose(loss, 3 * np.log(4) + 0.5 * penalty, rtol=1e-6)
    assert float(weight) == 3
    np.testing.assert_allclose(sums["cross_entropy"], 3 * np.log(4), rtol=1e-6)


def test_the_middles_of_places_in_boxes():
    # Middles are at 1 and 3 down, at 1, 3 and 5 across.
    boxes = jnp.array([[[0, 2, 4, 6], [1, 1, 2, 2], [0, 0, 0, 0]]])
    found = jax.jit(lambda boxes: within(boxes, (4, 6), (2, 3)))(boxes)
    both, first, none = [0, 1, 1, 0, 1, 1], [1, 0, 0, 0, 0, 0], [0] * 6
    np.testing.assert_array_equal(found, [[both, first, none]])


def test_pointing_counts_the_words_that_name_a_thing(monkeypatch):
    from tasks import generation

    monkeypatch.setattr(generation.GenerationTask, "evaluate", lambda *_: {})
    monkeypatch.setattr(
        generation.GenerationTask, "metrics", lambda _, evaluated: {"batches": len(list(evaluated))}
    )
    given = task()
    evaluate = jax.jit(lambda weights, batch: given.evaluate(Given(weights), batch))
    output = jax.device_get(evaluate(WEIGHTS, BATCH))
    # Middles are at 2 down and 1, 3, 5 across: looked at are 1, 3 and 5, all wrong; then 1, right.
    batch = jax.device_get(BATCH)
    assert given.metrics([(batch, output)]) == {
        "batches": 1,
        "pointing": 0.0,
        "pointing_chance": pytest.approx((2 / 3 + 1 / 3 + 1 / 3) / 3),
    }
    right = np.array(WEIGHTS)
    right[1, 1] = 0.6, 0.2, 0.2
    output = jax.device_get(evaluate(right, BATCH))
    assert given.metrics([(batch, output)])["pointing"] == pytest.approx(1 / 3)
    batch["weight"] = np.array([1.0, 0.0])
    assert given.metrics([(batch, output)])["pointing"] == 0


def test_bleu_knows_all_captions_of_an_image_and_scenes_have_two_wordings():
    given = task()
    made = ["a one left of a two", "a three over a four"]
    assert given.measure(made, [["a one beside a two"], ["a three over a four"]], np.arange(2))["exact"] == 1
    assert (
        given.measure(made, [["a one above a two"], ["a three above a four"]], np.arange(2))["exact"] == 0.5
    )
    photos = task("dataset=coco_captions")
    found = photos.measure(made, [["x", "a one left of a two"], ["a three over a four"]], np.arange(2))
    assert found == {"bleu": pytest.approx(100)}


@pytest.fixture(scope="module")
def captioner():
    """A task with an untrained model of it, and what it says of image files."""
    made = task("attention=hard,smoke", **{"model.dim": 8})
    words = Subwords.fit(["a one left of a two"], unit="word", vocab_size=99)
    inputs = {"target": words.to_json(), "image_shape": [32, 32, 1]}
    model = made.make_model(inputs, nnx.Rngs(0))
    made.__dict__["encoded"] = Encoded(None, inputs, [])

    def tell(paths):
        records = [{"path": str(path), "where": str(path)} for path in paths]
        return answers(made, jax.jit(lambda batch: made.predict(model, batch)), records, inputs)

    return tell


def test_image_files_alone_are_told_as_in_a_batch(captioner, tmp_path):
    random = np.random.default_rng(0)
    paths = [tmp_path / f"{index}.png" for index in range(3)]
    for path, shape in zip(paths, [(32, 32), (50, 40, 3), (32, 32)], strict=True):
        Image.fromarray(random.integers(0, 256, shape).astype(np.uint8)).save(path)
    together = captioner(paths)
    assert all(1 <= len(answer["text"].split()) <= 24 for answer in together)
    assert captioner(paths[:1])[0]["line"] == together[0]["line"] == together[0]["text"]
    with pytest.raises(UserError, match=r"nothing\.png cannot be read as an image: No such file"):
        captioner([tmp_path / "nothing.png"])


def test_text_is_no_image():
    with pytest.raises(UserError, match="line 4: no path of an image file"):
        task().encode_records([{"text": "a dog", "where": "line 4"}], {"image_shape": [32, 32, 1]})


def test_weights_must_not_be_negative():
    with pytest.raises(UserError, match=r"config\.entropy_weight is -1"):
        task(entropy_weight=-1.0)
