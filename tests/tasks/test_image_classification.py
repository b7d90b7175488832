"""Image classification: pixels, sums and what makes two tasks the same."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import tasks
from configs import EXPERIMENT, image
from errors import UserError
from tasks.image_classification import Standardise
from training import config as configs
from training.optimizer import SGD
from training.state import evaluation_step, train_step


class Given(nnx.Module):
    """A model whose logits are its input."""

    def __call__(self, images, *, train, rngs=None):
        return images[:, 0, 0]


def config(**fields):
    return configs.override(image.get_config("smoke"), fields, EXPERIMENT, parsed=True)


def batch(logits, labels, weights):
    logits = jnp.asarray(logits, jnp.float32)
    return {
        "image": logits[:, None, None],
        "label": jnp.asarray(labels, jnp.int32),
        "weight": jnp.asarray(weights, jnp.float32),
    }


LOGITS = [[2.0, 0.0, -1.0], [0.0, 1.0, 3.0], [5.0, 0.0, 0.0], [0.5, 0.2, 0.1]]
LABELS, WEIGHTS = [0, 1, 1, 0], [1, 1, 1, 0]  # right, wrong, wrong; and padding, which would be right


def log_probabilities(logits):
    logits = np.asarray(logits, np.float64)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def cross_entropies():
    return -log_probabilities(LOGITS)[np.arange(4), LABELS]


def test_standardise_is_scale_mean_deviation_and_zeros_around():
    transform = Standardise(scale=16.0, mean=(0.5, 0.25), std=(0.5, 0.125), image_size=5)
    pixels = np.array([[[[0, 0], [8, 4]], [[16, 8], [12, 6]]]], np.uint8)
    images = transform({"image": pixels, "label": np.array([3])})
    assert images["image"].dtype == np.float32
    assert images["image"].shape == (1, 5, 5, 2)
    np.testing.assert_allclose(images["image"][0, 1:3, 1:3, 0], [[-1, 0], [1, 0.5]])
    np.testing.assert_allclose(images["image"][0, 1:3, 1:3, 1], [[-2, 0], [2, 1]])
    assert np.count_nonzero(images["image"]) == 6  # and zeros, the mean, everywhere around
    np.testing.assert_array_equal(images["label"], [3])
    np.testing.assert_array_equal(pixels[0, 0, 1], [8, 4])


def test_without_a_size_images_stay_as_large_as_they_are():
    transform = Standardise(scale=255.0, mean=(0.0,), std=(1.0,), image_size=0)
    assert transform({"image": np.zeros((2, 3, 4, 1), np.uint8)})["image"].shape == (2, 3, 4, 1)


def test_statistics_are_those_of_the_training_images_unless_given():
    task = tasks.build(config())
    example = task.data().example
    assert example["image"].shape == (1, 8, 8, 1)
    assert example["image"].dtype == np.float32
    standardised = task.standardise({"image": task.images.train.images})["image"]
    np.testing.assert_allclose(standardised.mean(dtype=np.float64), 0, atol=1e-4)
    np.testing.assert_allclose(standardised.std(dtype=np.float64), 1, rtol=1e-4)
    given = tasks.build(config(**{"encoding.mean": (0.5,), "encoding.std": (0.25,)}))
    assert given.standardise == Standardise(scale=16.0, mean=(0.5,), std=(0.25,), image_size=0)


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"encoding.mean": (0.5, 0.5, 0.5)}, "config.encoding.mean has 3 values"),
        ({"encoding.std": (0.5, 0.5)}, "config.encoding.std has 2 values"),
        (
            {"encoding.image_size": 7},
            "config.encoding.image_size is 7, smaller than the images of digits (8 x 8)",
        ),
    ],
)
def test_statistics_and_sizes_that_do_not_fit_the_images_are_one_line(fields, said):
    with pytest.raises(UserError) as caught:
        tasks.build(config(**fields)).data()
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_loss_is_the_sum_of_weighted_cross_entropies():
    task = tasks.build(config())
    loss, weight, sums = task.loss(Given(), batch(LOGITS, LABELS, WEIGHTS), rngs=nnx.Rngs(0))
    np.testing.assert_allclose(loss, cross_entropies()[:3].sum(), rtol=1e-6)
    assert (float(weight), float(sums["accuracy"])) == (3.0, 1.0)


def test_label_smoothing_spreads_probability_over_all_classes_in_training_alone():
    task = tasks.build(config(label_smoothing=0.3))
    loss, _, _ = task.loss(Given(), batch(LOGITS, LABELS, WEIGHTS), rngs=nnx.Rngs(0))
    targets = 0.7 * np.eye(3)[LABELS] + 0.1
    expected = -(targets * log_probabilities(LOGITS)).sum(-1)[:3].sum()
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    plain = task.evaluate(Given(), batch(LOGITS, LABELS, WEIGHTS))["loss"]
    np.testing.assert_allclose(plain, cross_entropies(), rtol=1e-6)


def test_padding_counts_for_nothing_even_where_its_loss_is_not_a_number():
    task = tasks.build(config())
    for padding in (LOGITS[3], [np.nan] * 3, [np.inf, 0.0, 0.0]):
        given = jax.tree.map(np.asarray, batch([*LOGITS[:3], padding], LABELS, WEIGHTS))
        metrics = task.metrics([(given, jax.device_get(task.evaluate(Given(), given)))])
        assert metrics == {
            "accuracy": pytest.approx(1 / 3),
            "loss": pytest.approx(cross_entropies()[:3].mean()),
            "examples": 3.0,
        }


def test_predictions_are_the_likeliest_label_and_all_probabilities():
    task = tasks.build(config())
    found = task.predict(Given(), batch(LOGITS, LABELS, WEIGHTS))
    np.testing.assert_array_equal(found["label"], [0, 2, 0, 0])
    np.testing.assert_allclose(found["probability"], np.exp(log_probabilities(LOGITS)), rtol=1e-5)


def test_evaluation_covers_every_example_once_and_training_goes_on():
    task = tasks.build(config(evaluation_batch_size=100))
    data = task.data()
    assert data.num_train == 1200
    for split, examples, batches in (("validation", 200, 2), ("test", 397, 4)):
        found = list(data.evaluation[split]())
        assert {b["image"].shape for b in found} == {(100, 8, 8, 1)}
        assert (len(found), sum(b["weight"].sum() for b in found)) == (batches, examples)
    train = data.train()
    for _ in range(30):  # more than an epoch
        shapes = {name: array.shape for name, array in next(train).items()}
        assert shapes == {"image": (64, 8, 8, 1), "label": (64,), "weight": (64,)}


def test_a_saved_place_is_gone_on_from_and_refused_by_other_data():
    def train(**fields):
        return tasks.build(config(**{"encoding.augmentation": "shift"} | fields)).data().train()

    stopped = train()
    for _ in range(20):  # into the second epoch
        next(stopped)
    place = json.loads(json.dumps(stopped.get_state()))
    resumed = train(label_smoothing=0.1)
    resumed.set_state(place)
    for expected, found in zip((next(stopped), next(stopped)), (next(resumed), next(resumed)), strict=True):
        for name in ("image", "label", "weight"):
            np.testing.assert_array_equal(found[name], expected[name])
    for other in (
        {"batch_size": 32},
        {"seed": 1},
        {"encoding.augmentation": "none"},
        {"dataset.train_size": 100},
    ):
        with pytest.raises(UserError):
            train(**other).set_state(place)


def test_tasks_are_equal_by_what_decides_the_loss_so_that_subsets_share_compiled_steps():
    steps = []
    for size, smoothing in ((50, 0.0), (100, 0.0), (100, 0.1)):
        task = tasks.build(config(**{"dataset.train_size": size, "label_smoothing": smoothing}))
        model = nnx.eval_shape(lambda task=task: task.make_model(task.data().inputs, nnx.Rngs(0)))
        structure, _ = nnx.split(model)
        steps.append((train_step(task, structure, SGD()), evaluation_step(task, structure)))
    assert steps[0][0] is steps[1][0]
    assert steps[0][1] is steps[1][1]
    assert steps[2][0] is not steps[0][0]


def test_the_model_fits_the_data():
    task = tasks.build(config(**{"encoding.image_size": 12}))
    params = nnx.state(nnx.eval_shape(lambda: task.make_model(task.data().inputs, nnx.Rngs(0))), nnx.Param)
    assert params["head"]["kernel"].shape == (32, 10)
    assert params["position_table"].shape == (1, 36, 32)


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"label_smoothing": 1.0}, "config.label_smoothing is 1.0; it must be a number, in [0, 1)"),
        ({"label_smoothing": -0.1}, "config.label_smoothing is -0.1; it must be a number, in [0, 1)"),
    ],
)
def test_a_wrong_task_is_one_line(fields, said):
    with pytest.raises(UserError) as caught:
        tasks.build(config(**fields))
    assert str(caught.value).startswith(said)
