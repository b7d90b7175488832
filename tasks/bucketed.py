"""Sets of vectors of many lengths as the data of a task: few shapes, batches by the number of vectors."""

from collections.abc import Iterator

import numpy as np

from data import buckets as bucketing
from data import pipeline
from data.buckets import Bucket
from data.examples import Batch, Examples
from tasks.task import Encoded, TaskData


def task_data(
    encoded: Encoded,
    *,
    batch_tokens: int,
    evaluation_batch_tokens: int,
    buckets: int,
    seed: int,
    longest: int = 0,
) -> TaskData:
    """Three splits as batches of examples of like lengths.

    Args:
        encoded: the data set.
        batch_tokens: vectors per training batch, padding included.
        evaluation_batch_tokens: vectors per evaluation batch.
        buckets: how many lengths to pad to, at most.
        seed: decides the order.
        longest: no example is padded to more vectors than that; 0 for no limit.

    Raises:
        UserError: a number is below 1.
    """
    train, validation, test = vars(encoded.splits).values()
    sizes = np.concatenate([split.sizes for split in (train, validation, test)])
    shapes, wide = (
        bucketing.choose(
            sizes, batch_vectors=vectors, count=buckets, longest=longest, by_both=bool(train.targets)
        )
        for vectors in (batch_tokens, evaluation_batch_tokens)
    )

    def evaluation(part: Examples):
        return lambda: (batch for _, batch in pipeline.bucketed_evaluation(part, wide))

    usual = int(np.argsort(train.sizes[:, 0], kind="stable")[len(train) // 2])
    fits = shapes[int(bucketing.assign(train.sizes[[usual]], shapes)[0])]
    return TaskData(
        train=lambda: pipeline.bucketed(train, shapes, seed=seed),
        evaluation={"validation": evaluation(validation), "test": evaluation(test)},
        num_train=len(train),
        batches_per_epoch=pipeline.batches_per_epoch(train, shapes),
        batch_sizes=tuple(bucket.batch_size for bucket in shapes),
        example=train.gather(np.array([usual]), fits.size),
        inputs=encoded.inputs,
    )


def new_input(examples: Examples, batch_tokens: int, longest: int = 0) -> Iterator[tuple[np.ndarray, Batch]]:
    """New examples as batches, with the number of the example in each row, -1 for padding.

    Shapes are powers of two, so that the next ones find their programs compiled.
    """
    if not len(examples):
        return
    doubled = 2 ** np.ceil(np.log2(np.maximum(examples.sizes, 1))).astype(np.int64)
    doubled[:, 0] = np.clip(doubled[:, 0], bucketing.GRAIN, longest or None)
    shapes = []
    for length, count in zip(*np.unique(doubled[:, 0], return_counts=True), strict=True):
        edges = doubled[doubled[:, 0] <= length, 1].max()
        most = min(max(batch_tokens // length, 1), 2 ** np.ceil(np.log2(count)))
        shapes.append(Bucket((int(length), int(edges)), 2 ** int(np.log2(most))))
    yield from pipeline.bucketed_evaluation(examples, tuple(shapes))
