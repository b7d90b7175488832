"""Batches of images, with augmentation.

A batch is a dict of
    image: uint8 [B, height, width, channels],
    label: int32 [B],
    weight: float32 [B], 1 for an example that counts and 0 for padding.
"""

import sys

from data.examples import Batch
from data.image import augmentation as augmentations
from data.image.types import LabelledImages
from data.pipeline import TrainingBatches
from data.plans import BatchPlan


def batches(
    images: LabelledImages,
    *,
    batch_size: int,
    seed: int,
    augmentation: augmentations.Augmentation = "none",
    start_step: int = 0,
    num_steps: int | None = None,
) -> TrainingBatches:
    """Batches to train on.

    Args:
        images: of any number >= 1.
        batch_size: examples per batch; may be more than there are.
        seed: decides order and augmentation.
        augmentation: move images by some pixels, or mirror them left to right, or both, at random.
        start_step: number of the first step to give.
        num_steps: the step to stop before, counted from 0 and not from `start_step`; None never
            stops.

    Returns:
        An iterator with `get_state`, `set_state` and `fingerprint`.

    Raises:
        errors.UserError: an argument is not allowed.
    """
    augmentations.check(augmentation)
    plan = BatchPlan(len(images), batch_size, seed, sys.maxsize if num_steps is None else num_steps)
    settings = {"batch_size": int(batch_size), "seed": int(seed), "augmentation": augmentation}

    def augment(step: int, batch: Batch) -> Batch:
        image = augmentations.augment(augmentation, batch["image"], seed=seed, step=step)
        return batch | {"image": image}

    return TrainingBatches(images, plan, settings, change=augment, start_step=start_step)
