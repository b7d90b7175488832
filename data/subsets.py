"""Nested, class-balanced subsets of labelled examples, and the part held out for validation.

Everything is read off one fixed order of the examples per seed: a subset of n is the first n
entries of that order, so the smaller of two subsets lies inside the larger; and the order deals
the classes out in turn, so a subset is balanced to within one example until a class runs out.
"""

import numpy as np

from data import streams

STREAM = "subset"  # the purpose of the random numbers


def balanced_order(labels: np.ndarray, seed: int, stream: str = STREAM) -> np.ndarray:
    """An order of the examples that takes the classes in turn and each class in random order.

    Args:
        labels: class of each example, int [n], >= 0.
        seed: chooses the random order; the same seed always gives the same.
        stream: names the random numbers; other streams give other orders.

    Returns:
        A permutation of 0..n-1, int64 [n]. A class that has run out is skipped from there on.
    """
    return _deal(streams.Stream(seed, stream).permutation(len(labels)), labels)


def held_out_size(size: int, fraction: float) -> int:
    """How many of `size` labelled examples are held out for validation.

    The nearest whole number to `size * fraction`, but at least one as soon as there are two
    examples, and never all of them. Neither this nor the rest of `size` shrinks as `size` grows.
    """
    return 0 if size < 2 else min(max(1, int(size * fraction + 0.5)), size - 1)


def train_and_validation(
    labels: np.ndarray, size: int, fraction: float, seed: int, stream: str = STREAM
) -> tuple[np.ndarray, np.ndarray]:
    """Chooses `size` labelled examples, part of them to train on, the rest to validate on.

    All examples are first divided, class by class, into a pool to train on and a pool to validate
    on; each is put into a balanced order and a prefix of each is taken. So for one seed both parts
    are nested in `size`, both are balanced, and no example ever changes sides.

    Args:
        labels: class of each example, int [n], >= 0.
        size: number of examples the method may see, 1 to n.
        fraction: share of them to validate on, in (0, 1); see `held_out_size`.
        seed: chooses the examples.
        stream: names the random numbers.

    Returns:
        Indices of the train and of the validation examples, int64. They share no example, except
        with `size` 1, where the one example there is serves as both.
    """
    order = balanced_order(labels, seed, stream)
    counts = np.bincount(labels)
    # Largest remainder in whole numbers: the quotas add up exactly, with no class favoured.
    quotas, remainders = np.divmod(held_out_size(len(labels), fraction) * counts, len(labels))
    short = held_out_size(len(labels), fraction) - int(quotas.sum())
    quotas[np.argsort(-remainders, kind="stable")[:short]] += 1
    to_validate = _turn(labels[order]) < quotas[labels[order]]

    held_out = held_out_size(size, fraction)
    train = _deal(order[~to_validate], labels)[: size - held_out]
    validation = _deal(order[to_validate], labels)[:held_out]
    return train, (train if size == 1 else validation)


def _turn(labels: np.ndarray) -> np.ndarray:
    """For each entry, how many entries of its own class stand before it, int64 [n]."""
    by_class = np.argsort(labels, kind="stable")
    counts = np.bincount(labels)
    turn = np.empty(len(labels), np.int64)
    turn[by_class] = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return turn


def _deal(indices: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Reorders `indices` so that classes take turns, keeping the order inside each class."""
    chosen = labels[indices]
    return indices[np.lexsort((chosen, _turn(chosen)))]
