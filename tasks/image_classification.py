"""One label for a set of pixels: image classification."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from data import pipeline
from data.image import batches
from data.image.augmentation import Augmentation
from data.image.load import labelled
from data.image.readers import pixels
from data.image.types import ImageSplits
from errors import UserError
from models.images import IMAGE_MODELS
from models.losses import cross_entropy
from spec import Block, Natural, Rate, call
from tasks.task import Batch, Evaluated, Inputs, Mapped, Record, Sums, TaskData


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class PixelEncoding:
    """How images become numbers.

    Attributes:
        image_size: pad images with zeros to this side, pixels; None: as they are.
        mean: of each channel, of pixels in [0, 1]; None: measured on the training images.
        std: standard deviation of each channel, likewise.
        augmentation: what is done to training images.
    """

    image_size: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    augmentation: Augmentation = "none"

    def standardise(self, name: str, images: np.ndarray, scale: float) -> Standardise:
        """The transform, with the statistics given or those of the training images.

        Args:
            name: of the data set, for messages.
            images: those of the training part, uint8 `[n, height, width, C]`.
            scale: the pixel value that counts as 1.

        Raises:
            UserError: images are larger than image_size, or the statistics are of other channels.
        """
        height, width, channels = images.shape[1:]
        if self.image_size is not None and self.image_size < max(height, width):
            raise UserError(
                f"config.encoding.image_size is {self.image_size}, smaller than the images of {name} "
                f"({height} x {width}); it pads and never crops: use None or at least {max(height, width)}"
            )
        for field in ("mean", "std"):
            given = getattr(self, field)
            if given is not None and len(given) != channels:
                raise UserError(
                    f"config.encoding.{field} has {len(given)} values {given}, but the images of {name} have "
                    f"{channels} channel(s); give {channels} or None to measure them"
                )
        scaled = images.reshape(-1, channels) / np.float32(scale)
        mean = scaled.mean(axis=0, dtype=np.float64) if self.mean is None else self.mean
        std = scaled.std(axis=0, dtype=np.float64) if self.std is None else self.std
        return Standardise(
            scale=scale,
            mean=tuple(float(m) for m in mean),
            std=tuple(max(float(s), 1e-3) for s in std),  # a constant channel has no deviation
            image_size=self.image_size or 0,
        )


IMAGES = call(labelled)
PIXEL_ENCODING = call(PixelEncoding)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageClassification:
    """Image in, one of a set of labels out; cross-entropy, with label smoothing if asked for.

    Attributes:
        label_smoothing: probability spread evenly over all classes in the training targets.
        batch_size: images per update.
        evaluation_batch_size: images per evaluation batch.
        dataset: which images.
        encoding: how they become numbers.
        model: what tells their labels.
        seed: of the order of images and of augmentation.
    """

    label_smoothing: Rate = 0.0
    batch_size: int = dataclasses.field(default=128, compare=False)
    evaluation_batch_size: int = dataclasses.field(default=500, compare=False)
    dataset: Annotated[Block, IMAGES] = dataclasses.field(compare=False)
    encoding: Annotated[Block, PIXEL_ENCODING] = dataclasses.field(compare=False)
    model: Annotated[Block, IMAGE_MODELS] = dataclasses.field(compare=False)
    seed: Natural = dataclasses.field(default=0, compare=False)
    best_metric = "accuracy"
    lower_is_better = False

    @functools.cached_property
    def images(self) -> ImageSplits:
        """The images, in memory."""
        return IMAGES.build(self.dataset, "config.dataset")

    @functools.cached_property
    def pixel_encoding(self) -> PixelEncoding:
        """How they become numbers."""
        return PIXEL_ENCODING.build(self.encoding, "config.encoding")

    @functools.cached_property
    def standardise(self) -> Standardise:
        """The pixel transform."""
        name, images = self.dataset["name"], self.images
        return self.pixel_encoding.standardise(name, images.train.images, images.scale)

    def data(self) -> TaskData:
        """The data set's three splits as batches of standardised images."""
        dataset = self.images

        def train():
            images = batches.batches(
                dataset.train,
                batch_size=self.batch_size,
                seed=self.seed,
                augmentation=self.pixel_encoding.augmentation,
            )
            return Mapped(images, self.standardise)

        def evaluation(split):
            for batch in pipeline.evaluation_batches(split, self.evaluation_batch_size):
                yield self.standardise(batch)

        example = self.standardise(dataset.train.gather(np.zeros(1, np.int64), (0, 0)))
        return TaskData(
            train=train,
            evaluation={
                "validation": functools.partial(evaluation, dataset.validation),
                "test": functools.partial(evaluation, dataset.test),
            },
            num_train=len(dataset.train),
            batches_per_epoch=len(dataset.train) / self.batch_size,
            batch_sizes=(self.batch_size,),
            example=example,
            inputs={
                "label_names": list(dataset.label_names),
                "image_shape": list(dataset.train.images.shape[1:]),
                "standardise": dataclasses.asdict(self.standardise),
            },
        )

    def make_model(self, inputs: Inputs, rngs: nnx.Rngs) -> nnx.Module:
        """The model of `config.model`, for the data set's image shape and classes."""
        height, width, channels = inputs["image_shape"]
        side = inputs["standardise"]["image_size"]
        return IMAGE_MODELS.build(
            self.model,
            "config.model",
            image_shape=(side or height, side or width, channels),
            num_classes=len(inputs["label_names"]),
            rngs=rngs,
        )

    def loss(self, model: nnx.Module, batch: Batch, *, rngs: nnx.Rngs) -> tuple[jax.Array, jax.Array, Sums]:
        """Weighted sum of the cross-entropy, the weight, and the sums for the training accuracy."""
        logits = model(batch["image"], train=True, rngs=rngs)
        losses = cross_entropy(logits, batch["label"], self.label_smoothing)
        weight = batch["weight"]
        correct = jnp.where(logits.argmax(-1) == batch["label"], weight, 0)
        return (losses * weight).sum(), weight.sum(), {"accuracy": correct.sum()}

    def evaluate(self, model: nnx.Module, batch: Batch) -> dict[str, jax.Array]:
        """The likeliest label of each image, and its loss without smoothing."""
        logits = model(batch["image"], train=False)
        return {"label": logits.argmax(-1), "loss": cross_entropy(logits, batch["label"])}

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
        shape, size = tuple(inputs["image_shape"]), self.evaluation_batch_size
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
