"""An image, the words for it; with soft attention, or with hard attention learnt by the variational bound."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import sacrebleu
from jaxtyping import Array, Bool, Float, Int

from attention import hard
from data.examples import Examples
from data.image.generated import scenes
from data.image.load import captioned
from data.image.readers import pixels
from data.image.types import Captioned, ImageExamples
from data.ragged import Ragged
from data.text.subwords import END, Subwords
from errors import UserError
from models.decoders.decoder import Draws
from models.losses import cross_entropy
from spec import Block, NonNegative, call
from tasks.generation import SUBWORDS, GenerationTask
from tasks.task import Batch, Encoded, Evaluated, Inputs, Record, Sums, numbered

CAPTIONED = call(captioned)

# Captions are words in lower case without punctuation, by BLEU taken as they are: "none" says so.
BLEU = sacrebleu.BLEU(tokenize="none", force=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Captioning(GenerationTask):
    """Images and captions, measured by BLEU-4 of words and by whether the model looks at what it names.

    Attributes:
        doubly_stochastic: weight of the penalty on places looked at too much or too little, lambda.
        reward_weight: of what hard attention learns from its draws, lambda_r.
        entropy_weight: of the entropy of what it draws from, lambda_e.
        dataset: which images and captions.

    Source: Xu et al. 2015, "Show, attend and tell".
    """

    doubly_stochastic: NonNegative = 0.0
    reward_weight: NonNegative = 1.0
    entropy_weight: NonNegative = 0.0
    dataset: Annotated[Block, CAPTIONED] = dataclasses.field(compare=False)
    best_metric = "bleu"

    def load(self) -> Encoded:
        """The data set, with a vocabulary of the words of the training captions."""
        splits = CAPTIONED.build(self.dataset, "config.dataset")
        said = [caption for several in splits.train.captions for caption in several]
        words = SUBWORDS.build(self.subwords, "config.subwords", lines=said)
        examples = numbered(
            splits, lambda part, first: _examples(part, words, first, every=part is splits.train)
        )
        inputs = {"target": words.to_json(), "image_shape": list(splits.train.images.shape[1:])}
        references = [several for split in vars(splits).values() for several in split.captions]
        return Encoded(examples, inputs, references)

    def columns(self, inputs: Inputs) -> dict[str, Any]:
        """The size of an image."""
        return {"image": tuple(inputs["image_shape"])}

    def loss(self, model: Any, batch: Batch, *, rngs: Any) -> tuple[jax.Array, jax.Array, Sums]:
        """Sum over all target tokens of the cross-entropy with what attention adds, and the tokens' number.

        With soft attention this is the cross-entropy and the doubly stochastic penalty. With hard attention
        its value is an estimate of the variational bound's, and its gradient one of the bound's gradient.
        """
        found = model(batch, train=True, rngs=rngs, return_weights=True)
        tokens, real = batch["tokens"], batch["target_mask"]
        losses = jnp.where(real, cross_entropy(found.logits, tokens, self.label_smoothing), 0)
        right = jnp.where(real, found.logits.argmax(axis=-1) == tokens, False)
        total = losses.sum()
        sums = {"cross_entropy": total, "accuracy": right.sum().astype(losses.dtype)}
        if found.draws is not None:
            total = variational(-losses, found.draws, real, self.reward_weight, self.entropy_weight).sum()
        if self.doubly_stochastic:
            for weights in found.weights:
                seen = jnp.where(real[:, None, :, None], weights, 0)
                penalty = hard.doubly_stochastic(seen)
                exists = real.any(axis=1)[:, None]
                total += self.doubly_stochastic * jnp.where(exists, penalty, 0).mean(axis=1).sum()
        return total, real.sum().astype(losses.dtype), sums

    def evaluate(self, model: Any, batch: Batch) -> dict[str, jax.Array]:
        """The caption made, the loss of the true one, and whether the model looked at what that one names.

        Where it looked most is one place of the grid; it counts as right if its middle lies in the box.
        """
        found = super().evaluate(model, batch)
        if "boxes" not in batch:
            return found
        inside = within(batch["boxes"], batch["image"].shape[1:3], model.inputs.grid)
        # Who looks everywhere alike, or has no attention, points where chance would.
        found["pointed"] = found["chance"] = inside.astype(jnp.float32).mean(axis=-1)
        weights = model(batch, return_weights=True).weights
        if weights:
            place = sum(layer.mean(axis=1) for layer in weights).argmax(axis=-1)
            pointed = jnp.take_along_axis(inside, place[..., None], axis=-1)[..., 0]
            found["pointed"] = pointed.astype(jnp.float32)
        return found

    def metrics(self, evaluated: Iterable[Evaluated]) -> dict[str, float]:
        """What all such tasks measure, and how often attention was on the thing that was being named."""
        looks: dict[str, list[np.ndarray]] = {"pointed": [], "chance": []}

        def noting() -> Iterator[Evaluated]:
            for batch, output in evaluated:
                if "pointed" in output:
                    named = batch["boxes"].any(axis=-1) & (batch["weight"] > 0)[:, None]
                    for name, found in looks.items():
                        found.append(output[name][named])
                yield batch, output

        found = super().metrics(noting())
        if looks["pointed"]:
            pointed, chance = (float(np.concatenate(x).mean(dtype=np.float64)) for x in looks.values())
            found |= {"pointing": pointed, "pointing_chance": chance}
        return found

    def measure(
        self, made: Sequence[str], references: Sequence[Sequence[str]], examples: np.ndarray
    ) -> dict[str, float]:
        """BLEU-4 against all captions of an image; of scenes, how many are told right, in whichever words."""
        # One stream of references for each number; an image with fewer of them has None in the later ones.
        streams = [list(stream) for stream in itertools.zip_longest(*references)]
        found = {"bleu": BLEU.corpus_score(list(made), streams).score}
        if self.dataset["name"] in scenes.SETS:
            pairs = zip(made, references, strict=True)
            found["exact"] = float(np.mean([scenes.plain(a) == scenes.plain(b) for a, (b,) in pairs]))
        return found

    def encode_records(self, records: Sequence[Record], inputs: Inputs) -> tuple[np.ndarray, Examples]:
        """Image files, `{"path": file}`, brought to the size and the channels of the training images."""
        height, width, channels = inputs["image_shape"]
        for record in records:
            if "path" not in record:
                where = record.get("where", "input")
                raise UserError(f"{where}: no path of an image file, and nothing else is taken")
        found = [pixels.fitted(Path(record["path"]), (height, width), channels) for record in records]
        images = np.stack(found) if found else np.zeros((0, height, width, channels), np.uint8)
        rows = np.arange(len(records))
        return rows, Examples({"image": images, "example": rows.astype(np.int32)})


def variational(
    log_likelihood: Float[Array, "B T"],
    draws: Draws,
    real: Bool[Array, "B T"],
    reward_weight: float,
    entropy_weight: float,
) -> Float[Array, "B T"]:
    """`attention.hard.variational_loss` of captions whose every word was made after a look of its own.

    A look cannot change the words before it, so what it is rewarded by are its own word and those after it,
    which varies less than the whole caption would and has the same mean. The baseline of a look is the mean
    reward at the same place of the *other* captions of the batch: leaving out its own, the gradient stays
    exact on average (Mnih and Rezende 2016).

    Args:
        log_likelihood: of each word, given the looks, 0 where none is.
        draws: the looks.
        real: which words there are.
        reward_weight: lambda_r.
        entropy_weight: lambda_e.

    Returns:
        The loss of each word, 0 where none is. Its value is `-(log_likelihood + entropy_weight H)`.
    """
    after = jax.lax.stop_gradient(jnp.cumsum(log_likelihood[:, ::-1], axis=1)[:, ::-1] - log_likelihood)
    reward = jnp.where(real, log_likelihood + after, 0)
    count = real.sum(axis=0).astype(reward.dtype)
    baseline = reward.sum(axis=0) / jnp.maximum(count, 1)
    # The distance from the others' mean is n / (n - 1) times that from the mean of all; alone it is none.
    stretch = jnp.where(count > 1, count / jnp.maximum(count - 1, 1), 0)

    def at_place(reward, log_probability, entropy, baseline, stretch):
        weights = {"reward_weight": reward_weight * stretch, "entropy_weight": entropy_weight}
        return hard.variational_loss(reward, log_probability, entropy, baseline, **weights)

    by_place = jax.vmap(at_place, in_axes=(1, 1, 1, 0, 0), out_axes=1)
    losses = by_place(reward, draws.log_probability, draws.entropy, baseline, stretch)
    return jnp.where(real, losses + after, 0)


def within(boxes: Int[Array, "B T 4"], size: tuple[int, int], grid: tuple[int, int]) -> Bool[Array, "B T S"]:
    """Whether the middle of each place of a grid over an image lies in a box.

    Args:
        boxes: top, left, bottom and right in pixels, the last two exclusive.
        size: height and width of the image, pixels.
        grid: rows and columns, S places row by row.
    """
    rows, columns = (
        (jnp.arange(count, dtype=jnp.float32) + 0.5) * extent / count
        for extent, count in zip(size, grid, strict=True)
    )
    top, left, bottom, right = jnp.moveaxis(boxes.astype(jnp.float32), -1, 0)[..., None]
    in_row = (top <= rows[None, None]) & (rows[None, None] < bottom)
    in_column = (left <= columns[None, None]) & (columns[None, None] < right)
    return (in_row[..., :, None] & in_column[..., None, :]).reshape(*boxes.shape[:2], -1)


def _examples(part: Captioned, words: Subwords, first: int, *, every: bool = False) -> ImageExamples:
    """An example for each image with its first caption, or for every caption of it."""
    several = [said if every else said[:1] for said in part.captions]
    image = np.repeat(np.arange(len(part), dtype=np.int32), [len(said) for said in several])
    tokens = words.encode([caption for said in several for caption in said])
    targets = {"tokens": Ragged.of([[*found, END] for found in tokens], np.int32)}
    if len(part.boxes):
        boxes = [np.concatenate([part.boxes[row], np.zeros((1, 4), np.int16)]) for row in image.tolist()]
        targets["boxes"] = Ragged.of(boxes, np.int16, (4,))
    return ImageExamples({"image": image, "example": first + image}, targets=targets, images=part.images)
