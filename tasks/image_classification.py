"""One label for a set of pixels: image classification."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from ml_collections import ConfigDict

from data import pipeline
from data.image import batches
from data.image import load as load_images
from data.image.readers import pixels
from data.image.types import ImageSplits
from errors import UserError
from models import variants
from tasks.task import Batch, Evaluated, Inputs, Mapped, Record, Sums, TaskData, label_smoothing


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
    lower_is_better = False

    @classmethod
    def from_config(cls, config: ConfigDict) -> "ImageClassification":
        """The task a config describes."""
        return cls(label_smoothing=label_smoothing(config), config=config)

    @functools.cached_property
    def dataset(self) -> ImageSplits:
        """The images, in memory."""
        fields = self.config.dataset
        return load_images.labelled(
            fields.name,
            data_dir=fields.data_dir or None,
            train_size=fields.train_size or None,
            split_seed=self.config.seed if fields.subset_seed < 0 else fields.subset_seed,
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
            augmentation = config.dataset.augmentation
            images = batches.batches(
                dataset.train, batch_size=config.batch_size, seed=config.seed, augmentation=augmentation
            )
            return Mapped(images, self.standardise)

        def evaluation(split):
            for batch in pipeline.evaluation_batches(split, config.evaluation_batch_size):
                yield self.standardise(batch)

        for name in ("batch_size", "evaluation_batch_size"):
            if config[name] < 1:
                raise UserError(f"config.{name} is {config[name]}; it must be at least 1")
        example = self.standardise(dataset.train.gather(np.zeros(1, np.int64), (0, 0)))
        return TaskData(
            train=train,
            evaluation={
                "validation": functools.partial(evaluation, dataset.validation),
                "test": functools.partial(evaluation, dataset.test),
            },
            num_train=len(dataset.train),
            batches_per_epoch=len(dataset.train) / config.batch_size,
            batch_sizes=(config.batch_size,),
            example=example,
            inputs={
                "label_names": list(dataset.label_names),
                "image_shape": list(dataset.train.images.shape[1:]),
                "standardise": dataclasses.asdict(self.standardise),
            },
        )

    def model(self, inputs: Inputs, rngs: nnx.Rngs) -> nnx.Module:
        """The model of `config.model`, for the data set's image shape and classes."""
        height, width, channels = inputs["image_shape"]
        side = inputs["standardise"]["image_size"]
        return variants.build(
            self.config.model,
            image_shape=(side or height, side or width, channels),
            num_classes=len(inputs["label_names"]),
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

    def evaluate(self, model: nnx.Module, batch: Batch) -> dict[str, jax.Array]:
        """The likeliest label of each image, and its loss without smoothing."""
        logits = model(batch["image"], train=False)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"])
        return {"label": logits.argmax(-1), "loss": losses}

    def metrics(self, evaluated: Iterable[Evaluated]) -> dict[str, float]:
        """Accuracy and mean cross-entropy over every example of a split."""
        correct = loss = examples = 0.0
        for batch, found in evaluated:
            real = batch["weight"] > 0
            correct += float((found["label"] == batch["label"])[real].sum())
            loss += float(found["loss"][real].sum(dtype=np.float64))
            examples += float(real.sum())
        return {"accuracy": correct / examples, "loss": loss / examples, "examples": examples}

    def encode(self, records: Sequence[Record], inputs: Inputs) -> Iterator[tuple[np.ndarray, Batch]]:
        """Image files, `{"path": file}`, as the training images were given."""
        shape, size = tuple(inputs["image_shape"]), self.config.evaluation_batch_size
        standardise = Standardise(**inputs["standardise"])
        for start in range(0, len(records), size):
            images = np.zeros((min(size, len(records)), *shape), np.uint8)
            rows = np.full(len(images), -1)
            for row, record in enumerate(records[start : start + size]):
                if "path" not in record:
                    raise UserError(f"{record['where']}: no path of an image file, and nothing else is taken")
                images[row] = pixels.exact(Path(record["path"]), shape)
                rows[row] = start + row
            yield rows, standardise({"image": images})

    def predict(self, model: nnx.Module, batch: Batch) -> dict[str, jax.Array]:
        """The likeliest label and the probability of each."""
        logits = model(batch["image"], train=False)
        return {"label": logits.argmax(-1), "probability": jax.nn.softmax(logits)}

    def answer(self, record: Record, prediction: Mapping[str, np.ndarray], inputs: Inputs) -> dict[str, Any]:
        """The label, and how probable it is."""
        label, names = int(prediction["label"]), inputs["label_names"]
        probability = float(prediction["probability"][label])
        return {"line": names[label], "label": names[label], "probability": round(probability, 6)}
