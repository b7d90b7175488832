"""The front door, and the implementations behind it that run on any backend."""

from functools import partial

import numpy as np

import attention
from attention.blockwise import blockwise_attention
from tests.attention.mechanism import Mechanism

MECHANISMS = [
    Mechanism(
        "dot_product-dense",
        partial(attention.dot_product_attention, implementation="dense"),
        shift_invariant=True,
    ),
    Mechanism(
        "blockwise",
        partial(blockwise_attention, block_size=3),
        with_block_size=lambda size: partial(blockwise_attention, block_size=size),
        with_window=lambda window: partial(blockwise_attention, window=window, query_offset=1),
        shift_invariant=True,
        own_derivative=True,
    ),
    Mechanism(
        "blockwise-causal",
        partial(blockwise_attention, block_size=2, is_causal=True),
        square=True,
        bag_of_words=False,
        pattern=lambda T, S: np.tri(T, S, dtype=bool),
        causal=True,
        shift_invariant=True,
    ),
]
