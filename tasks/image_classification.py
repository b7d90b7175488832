"""One label for a set of pixels: image classification."""

import dataclasses
import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from ml_collections import ConfigDict

import data.images as image_data
import data.pipeline as pipeline
from errors import UserError
from models import variants
from tasks.task import Batch, Mapped, Sums, TaskData


@dataclasses.dataclass(frozen=True)
class Standardise:
    """Pixels as the models take them: float32, per-channel mean 0 and deviation 1, zero-padded to a size.

    Attributes:
        scale: the pixel value that counts as 1.
        mean: per channel, after scaling.
        std: per channel, after scaling.
        image_size: side to pad to, pixels; 0 leaves images as they are.
    """

    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]
    image_size: int

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Standardise `batch["image"]`, uint8 `[B, h, w, C]`."""
        factor = np.asarray([1 / (self.scale * s) for s in self.std], np.float32)
        shift = np.asarray([m / s for m, s in zip(self.mean, self.std, strict=True)], np.float32)
        images = batch["image"].astype(np.float32) * factor - shift
        if self.image_size:
            _, height, width, _ = images.shape
            pad = [((self.image_size - n) // 2, (self.image_size - n + 1) // 2) for n in (height, width)]
            images = np.pad(images, ((0, 0), *pad, (0, 0)))
        return {**batch, "image": images}


@dataclasses.dataclass(frozen=True)
class ImageClassification:
    """Image in, one of a set of labels out; cross-entropy, with label smoothing if asked for.

    Tasks compare by what decides the loss alone, so that runs on other subsets share compiled steps.

    Attributes:
        label_smoothing: probability spread evenly over all classes in the training targets.
        config: the whole experiment config.
    """

    label_smoothing: float
    config: ConfigDict = dataclasses.field(compare=False)
    best_metric = "accuracy"

    @classmethod
    def from_config(cls, config: ConfigDict) -> "ImageClassification":
        """The task a config describes."""
        if not 0 <= config.label_smoothing < 1:
            raise UserError(f"config.label_smoothing is {config.label_smoothing}; it must be in [0, 1)")
        return cls(label_smoothing=config.label_smoothing, config=config)

    @functools.cached_property
    def dataset(self) -> image_data.ImageDataset:
        """The images, in memory."""
        fields = self.config.dataset
        return image_data.load(
            fields.name,
            data_dir=fields.data_dir or None,
            train_size=fields.train_size,
            seed=self.config.seed if fields.subset_seed < 0 else fields.subset_seed,
            validation_fraction=fields.validation_fraction,
        )

    @functools.cached_property
    def standardise(self) -> Standardise:
        """The pixel transform, with the config's statistics or those of the training images."""
        fields, images = self.config.dataset, self.dataset.train.images
        height, width, channels = images.shape[1:]
        if fields.image_size and fields.image_size < max(height, width):
            raise UserError(
                f"config.dataset.image_size is {fields.image_size}, smaller than the images of "
                f"{fields.name} ({height} x {width}); it pads and never crops: use 0 or at least "
                f"{max(height, width)}"
            )
        for name in ("mean", "std"):
            given = fields[name]
            if not all(isinstance(value, int | float) for value in given):
                raise UserError(f"config.dataset.{name} is {tuple(given)}; it must hold numbers, or be ()")
            if given and len(given) != channels:
                raise UserError(
                    f"config.dataset.{name} has {len(given)} values {tuple(given)}, but the images of "
                    f"{fields.name} have {channels} channel(s); give {channels} or () to measure them"
                )
        scaled = images.reshape(-1, channels) / np.float32(self.dataset.scale)
        mean = fields.mean or scaled.mean(axis=0, dtype=np.float64)
        std = fields.std or scaled.std(axis=0, dtype=np.float64)
        return Standardise(
            scale=self.dataset.scale,
            mean=tuple(float(m) for m in mean),
            std=tuple(max(float(s), 1e-3) for s in std),  # a constant channel has no deviation
            image_size=fields.image_size,
        )

    def data(self) -> TaskData:
        """The data set's three splits as batches of standardised images."""
        config, dataset = self.config, self.dataset

        def train():
            batches = pipeline.batches(
                dataset.train,
                batch_size=config.batch_size,
                seed=config.seed,
                augmentation=config.dataset.augmentation,
            )
            return Mapped(batches, self.standardise)

        def evaluation(split):
            for batch in pipeline.evaluation_batches(split, config.evaluation_batch_size):
                yield self.standardise(batch)

        one = {"image": dataset.train.images[:1], "label": dataset.train.labels[:1]}
        return TaskData(
            train=train,
            evaluation={
                "validation": functools.partial(evaluation, dataset.validation),
                "test": functools.partial(evaluation, dataset.test),
            },
            num_train=len(dataset.train.labels),
            example=self.standardise({**one, "weight": np.ones(1, np.float32)}),
        )

    def model(self, data: TaskData, rngs: nnx.Rngs) -> nnx.Module:
        """The model of `config.model`, for the data set's image shape and classes."""
        return variants.build(
            self.config.model,
            image_shape=data.example["image"].shape[1:],
            num_classes=len(self.dataset.label_names),
            rngs=rngs,
        )

    def loss(self, model: nnx.Module, batch: Batch, *, rngs: nnx.Rngs) -> tuple[jax.Array, jax.Array, Sums]:
        """Weighted sum of the cross-entropy, the weight, and the sums for the training accuracy."""
        logits = model(batch["image"], train=True, rngs=rngs)
        targets = jax.nn.one_hot(batch["label"], logits.shape[-1])
        targets = optax.smooth_labels(targets, self.label_smoothing)
        losses = optax.softmax_cross_entropy(logits, targets)
        weight = batch["weight"]
        correct = jnp.where(logits.argmax(-1) == batch["label"], weight, 0)
        return (losses * weight).sum(), weight.sum(), {"accuracy": correct.sum()}

    def metric_sums(self, model: nnx.Module, batch: Batch) -> Sums:
        """Sums of correct answers, of the loss without smoothing, and of weights."""
        logits = model(batch["image"], train=False)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"])
        weight = batch["weight"]
        correct = jnp.where(logits.argmax(-1) == batch["label"], weight, 0)
        return {
            "accuracy": correct.sum(),
            # Padding repeats a real example, but 0 * inf would still be NaN.
            "loss": jnp.where(weight > 0, losses, 0).sum(),
            "weight": weight.sum(),
        }

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Accuracy and mean cross-entropy over every example of a split."""
        return {
            "accuracy": sums["accuracy"] / sums["weight"],
            "loss": sums["loss"] / sums["weight"],
            "examples": sums["weight"],
        }

    def predict(self, model: nnx.Module, batch: Batch) -> dict[str, jax.Array]:
        """The likeliest label and the probability of each."""
        logits = model(batch["image"], train=False)
        return {"label": logits.argmax(-1), "probability": jax.nn.softmax(logits)}
